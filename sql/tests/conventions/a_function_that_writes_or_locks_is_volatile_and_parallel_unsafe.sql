begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

-- Whoever calls a writer writes.
prepare offenders as
with recursive writers as (
  select s.name
  from sources s
  where s.code ~* '\m(insert into pgidem|update pgidem|delete from pgidem|truncate|lock table|execute (format|v_)|commit;|pg_(try_)?advisory)'
  union
  select s.name
  from writers w
  join sources s on s.name <> w.name and s.code like '%pgidem.' || w.name || '(%'
)
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname in (select name from writers)
  and (p.provolatile <> 'v' or p.proparallel <> 'u');

select is_empty('offenders', 'a function that writes or locks is volatile and parallel unsafe');

alter function pgidem._remove_expired stable;
alter function pgidem.idem_save_final parallel safe;
select set_eq('offenders', array['_remove_expired', 'idem_save_final'], 'a wrong label is found');

select * from finish();
rollback;
