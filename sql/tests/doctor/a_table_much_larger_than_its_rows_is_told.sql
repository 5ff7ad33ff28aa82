begin;
\ir ../_setup.psql
\ir ../_doctor.psql
select plan(3);

insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), repeat('x', 1900), :'fingerprint', 'completed', 200, null, null, now() - interval '1 day', now() + n * interval '1 second'
from generate_series(1, 40000) n;
analyze pgidem.idempotency_keys;
select is(pg_temp.status('bloat'), 'ok', 'large and full');
delete from pgidem.idempotency_keys where principal_id = :'principal' and expires_at > now() + interval '8000 seconds';
analyze pgidem.idempotency_keys;
select is(pg_temp.status('bloat'), 'warn', 'a fifth is left');
select matches(pg_temp.detail('bloat'), '^([6-9]|1\d)\d MB of pgidem.idempotency_keys are free$', 'it says how much is free, other tests may have left some');

select * from finish();
rollback;
