begin;
\ir ../_setup.psql
\ir ../_alone.psql
select plan(2);

update pgidem.settings set key_ttl = '2 days';
select is(expires_at - created_at, interval '48:00:00', 'settings.key_ttl') from :begin_key;
select is(expires_at - created_at, interval '00:01:00', 'a parameter wins')
from pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint', p_ttl => '1 minute');

select * from finish();
rollback;
