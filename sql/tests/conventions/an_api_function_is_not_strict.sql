begin;
\ir ../_alone.psql
select plan(2);

-- A strict function answers NULL to NULL, and a caller would take that for an outcome.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proisstrict;

select is_empty('offenders', 'no function is strict');

alter function pgidem.idem_complete strict;
select set_eq('offenders', array['idem_complete'], 'a strict one is found');

select * from finish();
rollback;
