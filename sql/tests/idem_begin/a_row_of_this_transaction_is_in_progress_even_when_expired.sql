begin;
-- L2: otherwise one transaction could claim a key twice and have two effects.
\ir ../_setup.psql
\ir ../_clock.psql
select plan(3);

set local test.now = '2026-03-01 12:00+00';
select :begin_key \gset
set local test.now = '2026-03-09 12:00+00';
select is((:begin_key).outcome, 'in_progress', 'the same request');
select is((:begin_other_request).outcome, 'in_progress', 'another request');
select is((select created_at from pgidem.idempotency_keys where :this_key), '2026-03-01 12:00+00', 'the row stays');

select * from finish();
rollback;
