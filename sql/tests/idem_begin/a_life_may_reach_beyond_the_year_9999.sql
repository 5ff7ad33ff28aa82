begin;
\ir ../_setup.psql
\ir ../_clock.psql
select plan(5);

set local test.now = '9999-12-31 23:59:59+00';
select is(expires_at, '10000-01-01 23:59:59+00'::timestamptz, 'a day')
from pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '1 day');
select is(:complete_key, '{"amount": 1}', 'completed');
set local test.now = '10000-01-01 23:59:58+00';
select is((:begin_key).outcome, 'replay', 'answers until then');

-- The last instant that PostgreSQL knows.
set local test.now = '294276-12-31 23:59:59+00';
select gen_random_uuid() as key \gset
select throws_ok(
  format('select pgidem.idem_begin(%L, %L, %L, %L)', :'principal', :'key', 'pay', :'fingerprint'),
  '22008', null, 'beyond the end of time is an error of the server'
);
select is_empty(format('select from pgidem.idempotency_keys where key = %L', :'key'), 'nothing is written');

select * from finish();
rollback;
