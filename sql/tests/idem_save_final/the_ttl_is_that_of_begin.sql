begin;
-- Case 26.
\ir ../_setup.psql
\ir ../_clock.psql
select plan(3);

set local timezone = 'Europe/Berlin';
set local test.now = '2026-03-28 12:00+01';
select is(expires_at, '2026-03-29 12:00+01'::timestamptz, 'a day is 86400 seconds')
from pgidem.idem_save_final(:'principal', gen_random_uuid(), 'pay', :'fingerprint', 404, '{}', p_ttl => '1 day');
select is(expires_at, '2026-03-29 12:00+01'::timestamptz, 'as in the settings')
from pgidem.idem_save_final(:'principal', gen_random_uuid(), 'pay', :'fingerprint', 404, '{}');
select is(expires_at, '2026-03-28 12:10+01'::timestamptz, 'a parameter wins')
from pgidem.idem_save_final(:'principal', gen_random_uuid(), 'pay', :'fingerprint', 404, '{}', p_ttl => '10 minutes');

select * from finish();
rollback;
