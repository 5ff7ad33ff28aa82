begin;
\ir ../_alone.psql
select plan(2);

-- A table that is distributed by principal can only keep a promise of uniqueness per principal.
prepare offenders as
select i.relname::text
from pg_index x
join pg_class i on i.oid = x.indexrelid
join pg_attribute a on a.attrelid = x.indrelid and a.attname in ('principal_id', 'user_id')
where i.relnamespace = 'pgidem'::regnamespace
  and (x.indisunique or x.indisexclusion)
  and a.attnum <> all (x.indkey);

select is_empty('offenders', 'every unique index of a table with a principal holds the principal');

create table pgidem.planted (principal_id uuid, key uuid, constraint planted_pkey primary key (key));
select set_eq('offenders', array['planted_pkey'], 'one without is found');

select * from finish();
rollback;
