begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select c.relname::text
from pg_class c
where c.relnamespace = 'pgidem'::regnamespace
  and c.relkind in ('r', 'p', 'v', 'm', 'f')
  and has_table_privilege('public', c.oid, 'select, insert, update, delete, truncate, references, trigger');

select is_empty('offenders', 'PUBLIC has no right on any table');

create table pgidem.planted ();
grant select on pgidem.planted to public;
select set_eq('offenders', array['planted'], 'a right of PUBLIC is found');

select * from finish();
rollback;
