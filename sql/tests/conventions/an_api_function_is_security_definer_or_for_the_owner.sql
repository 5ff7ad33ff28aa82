begin;
\ir ../_alone.psql
select plan(2);

-- version reads nothing. The others grant, or alter tables, or commit: they run with the rights of their caller.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname not like '\_%'
  and p.prokind = 'f'
  and not p.prosecdef
  and p.proname not in ('version', 'grant_app', 'grant_operator');

select is_empty('offenders', 'every API function that touches tables is security definer');

alter function pgidem.idem_begin security invoker;
select set_eq('offenders', array['idem_begin'], 'one with the rights of its caller is found');

select * from finish();
rollback;
