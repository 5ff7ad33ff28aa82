begin;
\ir ../_alone.psql
select plan(3);

-- The index of a constraint is described there.
prepare offenders as
select c.relname::text
from pg_class c
where c.relnamespace = 'pgidem'::regnamespace
  and coalesce(obj_description(c.oid, 'pg_class'), '') = ''
  and c.relkind <> 'c'
  and not exists (select from pg_constraint o where o.conindid = c.oid and o.conrelid <> 0 and o.contype in ('p', 'u', 'x'))
union all
select t.typname
from pg_type t
left join pg_class c on c.oid = t.typrelid
where t.typnamespace = 'pgidem'::regnamespace
  and coalesce(obj_description(t.oid, 'pg_type'), '') = ''
  and t.typcategory <> 'A'
  and coalesce(c.relkind, 'c') = 'c';

select is_empty('offenders', 'every table, index and type has a comment');
select isnt(obj_description('pgidem'::regnamespace, 'pg_namespace'), null, 'the schema has one');

create table pgidem.planted_table (a integer);
create index planted_index on pgidem.planted_table (a);
create type pgidem.planted_type as (a integer);
create domain pgidem.planted_domain as integer;
select set_eq('offenders', array['planted_domain', 'planted_index', 'planted_table', 'planted_type'],
  'missing comments are found');

select * from finish();
rollback;
