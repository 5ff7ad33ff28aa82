/*
The claim of an open transaction is invisible, but its gate is not. A foreign lock on the same number reads as a runner too.
*/
create or replace function pgidem._runner(
  p_principal_id uuid,
  p_key uuid
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
    and (l.classid::bigint << 32 | l.objid::bigint) = pgidem._gate(p_principal_id, p_key)
    and l.mode = 'ExclusiveLock'
    and l.granted;
$$;

comment on function pgidem._runner(uuid, uuid) is
  'Process id of the session whose transaction holds the gate of a key, 0 for a prepared transaction, null when none does.';

revoke all on function pgidem._runner(uuid, uuid) from public;
