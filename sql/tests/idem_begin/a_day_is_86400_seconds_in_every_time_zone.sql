begin;
-- Case 26: in Berlin the night to 29 March 2026 is one hour short.
\ir ../_setup.psql
\ir ../_clock.psql
select plan(3);

set local timezone = 'Europe/Berlin';
set local test.now = '2026-03-28 12:00+01';
select is(expires_at, '2026-03-29 12:00+01'::timestamptz, 'a day as parameter')
from pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '1 day');

update pgidem.settings set key_ttl = '1 day';
select is(expires_at, '2026-03-29 12:00+01'::timestamptz, 'a day in the settings')
from pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint');

set local test.now = '2026-10-24 12:00+02';
select is(expires_at, '2026-10-25 12:00+02'::timestamptz, 'a night that is one hour long')
from pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint', p_ttl => '1 day');

select * from finish();
rollback;
