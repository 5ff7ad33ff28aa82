begin;
\ir ../_setup.psql
select plan(1);

insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, now() - interval '2 days', now() - interval '1 day'
from generate_series(1, 3);
select pgidem._remove_expired(:'principal', :'key', clock_timestamp() + interval '1 second') \gset
select is(count(*), 3::bigint, 'expired or not') from pgidem.idempotency_keys where principal_id = :'principal';

select * from finish();
rollback;
