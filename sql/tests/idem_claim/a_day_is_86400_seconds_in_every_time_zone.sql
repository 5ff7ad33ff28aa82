begin;
-- Case 26: in Berlin the night to 29 March 2026 is one hour short.
\ir ../_record.psql
\ir ../_clock.psql
select plan(4);

set local timezone = 'Europe/Berlin';
set local test.now = '2026-03-28 12:00+01';
select token, live_until from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_lease => '1 day', p_retention => '1 day') \gset
select is(:'live_until'::timestamptz, '2026-03-29 12:00+01', 'a lease');
execute finish(:token, 'done') \gset
select is(:'live_until'::timestamptz, '2026-03-29 12:00+01', 'a retention');

update pgidem.settings set lease = '1 day', retention = '1 day';
select token, live_until from pgidem.idem_claim(:'user_id', 'another', :'fingerprint') \gset
select is(:'live_until'::timestamptz, '2026-03-29 12:00+01', 'a day in the settings');
set local test.now = '2026-10-24 12:00+02';
select pgidem.idem_renew(:'user_id', 'another', :token, '1 day'), live_until from pgidem.idem_claim(:'user_id', 'third', :'fingerprint') \gset
select is(:'live_until'::timestamptz, '2026-10-25 12:00+02', 'a night that is one hour long');

select * from finish();
rollback;
