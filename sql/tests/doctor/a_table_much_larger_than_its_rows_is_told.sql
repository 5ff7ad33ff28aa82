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
-- Other tests may have left some space, too; a fifth of 80 MB is used.
select ok(
  substring(pg_temp.detail('bloat') from '^(\d+) MB of pgidem.idempotency_keys are free$')::integer
    - pg_relation_size('pgidem.idempotency_keys') / 1048576 between -18 and -14,
  'it says how much is free'
);

select * from finish();
rollback;
