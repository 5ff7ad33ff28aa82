begin;
\ir ../_setup.psql
select plan(4);

-- The functions have their plans by then.
select :begin_key \gset
select :complete_key \gset
select is((:begin_key).outcome, 'replay', 'with the real clock');

savepoint test_clock;
\ir ../_clock.psql
set local test.now = '2000-01-01 00:00+00';
select created_at from pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint') \gset
select is(:'created_at'::timestamptz, '2000-01-01 00:00+00', 'with a replaced one');
rollback to savepoint test_clock;

select ok(pgidem._now() > now(), 'the real clock is back');
select ok(created_at > now(), 'for idem_begin as well')
from pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint');

select * from finish();
rollback;
