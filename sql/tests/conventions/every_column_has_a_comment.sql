begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select format('%s.%s', c.relname, a.attname)
from pg_class c
join pg_attribute a on a.attrelid = c.oid
where c.relnamespace = 'pgidem'::regnamespace
  and c.relkind in ('r', 'p', 'v', 'm', 'c')
  and a.attnum > 0
  and not a.attisdropped
  and coalesce(col_description(a.attrelid, a.attnum), '') = '';

select is_empty('offenders', 'every column of a table or type has a comment');

create type pgidem.planted as (a integer);
select set_eq('offenders', array['planted.a'], 'a missing comment is found');

select * from finish();
rollback;
