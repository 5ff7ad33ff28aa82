begin;
\ir ../_setup.psql
select plan(4);

-- Of each sign: pg_locks shows the number of a gate in two halves.
create temporary table keys as
select key
from (
  select distinct on (sign(pgidem._gate(:'principal', g.key))) g.key
  from (select gen_random_uuid() as key from generate_series(1, 100)) g
) one_of_each;
select is(count(*)::integer, 2, 'two keys') from keys;

savepoint s;
select count(pgidem.idem_begin(:'principal', key, 'pay', :'fingerprint')) from keys \gset
select is(pgidem._runner(pgidem._gate(:'principal', key)), pg_backend_pid(), 'this session') from keys;
rollback to savepoint s;
select is(count(pgidem._runner(pgidem._gate(:'principal', key)))::integer, 0, 'nobody once the claims are undone') from keys;

select * from finish();
rollback;
