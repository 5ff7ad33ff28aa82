begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select c.relname::text
from pg_class c
where c.relnamespace = 'pgidem'::regnamespace
  and c.relkind in ('r', 'p')
  and c.relpersistence <> 'p';

select is_empty('offenders', 'every table survives a crash');

create unlogged table pgidem.planted (a integer);
select set_eq('offenders', array['planted'], 'an unlogged one is found');

select * from finish();
rollback;
