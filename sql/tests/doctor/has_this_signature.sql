begin;
\ir ../_alone.psql
select plan(5);

select is(pg_get_function_arguments('pgidem.doctor'::regproc), '', 'no parameter');
select is(pg_get_function_result('pgidem.doctor'::regproc), 'SETOF pgidem.diagnosis', 'result');
select results_eq('select check_name from pgidem.doctor()', array['public_rights', 'logged_tables', 'foreign_key', 'settings',
  'read_only', 'crash_safety', 'standbys', 'lock_timeout', 'idle_timeout', 'tcp_timeouts', 'synchronous_commit',
  'autovacuum', 'dead_rows', 'bloat', 'wraparound', 'cleanup_schedule', 'cleanup_success', 'cleanup_backlog', 'stuck_claims', 'abandoned_leases'],
  'the checks');
select is(count(*), 0::bigint, 'a status, and what to mend exactly where it is not ok')
from pgidem.doctor()
where (status in ('ok', 'warn', 'fail') and detail <> '' and (status = 'ok') = (mend is null) and mend is distinct from '') is not true;
select is(count(*), 0::bigint, 'the comment names each')
from pgidem.doctor()
where obj_description('pgidem.doctor()'::regprocedure, 'pg_proc') !~ ('\m' || check_name || '\M');

select * from finish();
rollback;
