begin;
-- Case 25 and D4: the operation took longer than the TTL; the retry must still be answered.
\ir ../_setup.psql
\ir ../_clock.psql
select plan(4);

set local timezone = 'Europe/Berlin';
set local test.now = '2026-03-28 11:00+01';
select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '1 day') \gset
set local test.now = '2026-03-29 12:00+02';
select :complete_key \gset
select results_eq(
  'select created_at, expires_at from pgidem.idempotency_keys where ' || :'this_key',
  $$values ('2026-03-28 11:00+01'::timestamptz, '2026-03-30 12:00+02'::timestamptz)$$,
  'completed at the very instant of expiry: 24 hours from then'
);
select is((:begin_key).outcome, 'replay', 'and it answers');

select gen_random_uuid() as key \gset
set local test.now = '2026-03-28 11:00+01';
select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '1 day') \gset
set local test.now = '2026-04-05 09:00+02';
select pgidem.idem_complete(:'principal', :'key', 200, '{}') \gset
select is(expires_at, '2026-04-06 09:00+02'::timestamptz, 'completed much later: the same')
from pgidem.idempotency_keys where principal_id = :'principal' and key = :'key';

-- In Berlin the night to 29 March is one hour short, and a TTL stays exact seconds.
select gen_random_uuid() as key \gset
set local test.now = '2026-03-20 12:00+01';
select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '1 day') \gset
set local test.now = '2026-03-28 12:00+01';
select pgidem.idem_complete(:'principal', :'key', 200, '{}') \gset
select is(expires_at, '2026-03-29 12:00+01'::timestamptz, 'over the change of the clocks too')
from pgidem.idempotency_keys where principal_id = :'principal' and key = :'key';

select * from finish();
rollback;
