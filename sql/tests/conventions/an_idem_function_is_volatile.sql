begin;
\ir ../_alone.psql
select plan(2);

-- Case 03: a stable function would keep the snapshot from before its wait and miss the row of the winner.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname like 'idem\_%'
  and p.provolatile <> 'v';

select is_empty('offenders', 'no idem_ function is stable or immutable');

alter function pgidem.idem_begin stable;
select set_eq('offenders', array['idem_begin'], 'a stable one is found');

select * from finish();
rollback;
