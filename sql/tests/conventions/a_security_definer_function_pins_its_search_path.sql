begin;
-- Case 68: pg_temp stands last, or a temporary table would be found first.
\ir ../_alone.psql
select plan(2);

prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.prosecdef
  and not coalesce(p.proconfig @> array['search_path=pg_catalog, pg_temp'], false);

select is_empty('offenders', 'every security definer function has search_path = pg_catalog, pg_temp');

alter function pgidem.idem_begin set search_path = pg_temp, pg_catalog;
select set_eq('offenders', array['idem_begin'], 'another order is found');

select * from finish();
rollback;
