begin;
\ir ../_alone.psql
select plan(2);

-- L1: a subtransaction on every claim would cost an id, and more than 64 in one transaction slow down the whole server.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and (p.proname like 'idem\_%' or p.proname like '\_%')
  and p.prosrc ~* '\mexception\s+when\M';

select set_eq('offenders', array['_queue', '_await_gate', '_await_record', '_remove_expired', '_take_over', '_delete_expired', '_trim_run_details'],
  'a busy gate, an expired row, a dead record, a batch of the cleanup, and its trimming');

create function pgidem.idem_planted() returns void language plpgsql as $$
begin
  perform 1;
exception
  when lock_not_available then null;
end
$$;
select set_eq('offenders', array['_queue', '_await_gate', '_await_record', '_remove_expired', '_take_over', '_delete_expired', '_trim_run_details', 'idem_planted'], 'another block is found');

select * from finish();
rollback;
