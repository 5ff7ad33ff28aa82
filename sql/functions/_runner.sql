/*
The claim of an open transaction is invisible, but its gate is not. A foreign lock on the same number reads as a runner too.
*/
create or replace function pgidem._runner(
  p_gate bigint
)
returns integer
language sql
volatile
parallel unsafe
security invoker
as $$
  select coalesce(l.pid, 0)
  from pg_locks l
  where l.locktype = 'advisory'
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.objsubid = 1
    and (l.classid::bigint << 32 | l.objid::bigint) = p_gate
    and l.mode = 'ExclusiveLock'
    and l.granted;
$$;

comment on function pgidem._runner(bigint) is
  'Process id of the session whose transaction holds a gate, 0 for a prepared transaction, null when none does.';

revoke all on function pgidem._runner(bigint) from public;
