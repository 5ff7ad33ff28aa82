/*
The planner calls a query on the catalog expensive where it may not use a sequential scan, and then compiles it (jit), which
takes a hundred times as long as to run it.
*/
create or replace function pgidem.doctor()
returns setof pgidem.diagnosis
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off
set jit = off
as $$
begin
  return query select * from pgidem._diagnose_schema();
  return query select * from pgidem._diagnose_server();
  return query select * from pgidem._diagnose_roles();
  return query select * from pgidem._diagnose_tables();
  return query select * from pgidem._diagnose_cleanup();
  return query select * from pgidem._diagnose_keys();
end
$$;

comment on function pgidem.doctor() is
$$Looks for what is wrong, or will be, and says what to do about it. It changes nothing.

The schema: public_rights, logged_tables, foreign_key, settings. The server: read_only,
crash_safety, standbys. What sessions of the application start with, that is of every role that
grant_app named: lock_timeout, idle_timeout, tcp_timeouts, synchronous_commit. The tables:
autovacuum, dead_rows, bloat, wraparound. The cleanup: cleanup_schedule, cleanup_success,
cleanup_backlog. Claims that nobody finishes: stuck_claims, abandoned_leases; of a table of more
than 32768 pages they are estimated. On a standby it says what can be said there. Later versions add
checks. The command pgidem doctor adds what only a client can know.

Returns:
One row for each check. status is ok; warn for what may hurt one day, or in one case; or fail for
what does harm now, or puts the guarantee at risk. detail says what was found, mend what to do.

Errors:
55P03: a lock on a table was held for 2 seconds.

Example:
-- as an operator
select check_name, status, detail
from pgidem.doctor()
where check_name in ('public_rights', 'read_only', 'stuck_claims');
--> public_rights | ok | PUBLIC has no right here
--> read_only | ok | this server takes writes
--> stuck_claims | ok | no claim was committed without an answer$$;

revoke all on function pgidem.doctor() from public;
