begin;
-- H2. A plan made on the empty table would else be a sequential scan for as long as the session lives.
\ir ../_alone.psql
select plan(2);

-- A procedure that commits can have no SET clause.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname like 'idem\_%'
  and p.prokind = 'f'
  and not coalesce(p.proconfig @> array['lock_timeout=2s', 'enable_seqscan=off'], false);

select is_empty('offenders', 'every idem_ function has lock_timeout = 2s and enable_seqscan = off');

alter function pgidem.idem_begin reset lock_timeout;
alter function pgidem.idem_complete reset enable_seqscan;
select set_eq('offenders', array['idem_begin', 'idem_complete'], 'a missing clause is found');

select * from finish();
rollback;
