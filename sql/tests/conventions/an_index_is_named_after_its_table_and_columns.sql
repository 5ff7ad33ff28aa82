begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select i.relname::text
from pg_index x
join pg_class i on i.oid = x.indexrelid
join pg_class t on t.oid = x.indrelid
where i.relnamespace = 'pgidem'::regnamespace
  and not exists (select from pg_constraint c where c.conindid = i.oid and c.contype in ('p', 'u', 'x'))
  and i.relname <> t.relname || '_' || (
    select string_agg(a.attname, '_' order by a.attnum)
    from pg_attribute a
    where a.attrelid = i.oid
  ) || '_idx';

select is_empty('offenders', 'indexes are <table>_<columns>_idx');

create table pgidem.planted (a integer);
create index fast on pgidem.planted (a);
select set_eq('offenders', array['fast'], 'another name is found');

select * from finish();
rollback;
