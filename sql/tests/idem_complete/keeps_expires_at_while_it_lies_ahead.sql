begin;
-- D4: the TTL counts from begin.
\ir ../_setup.psql
\ir ../_clock.psql
select plan(1);

set local test.now = '2026-03-01 12:00+00';
select :begin_key \gset
set local test.now = '2026-03-02 11:59:59.999999+00';
select :complete_key \gset
select is((select expires_at from pgidem.idempotency_keys where :this_key), '2026-03-02 12:00+00', '24 hours after the claim');

select * from finish();
rollback;
