/*
The hash is a contract between versions: callers of an old and of a new version must meet at the same gate. Never change it.
*/
create or replace function pgidem._gate(
  p_principal_id uuid,
  p_key uuid
)
returns bigint
language sql
immutable
parallel safe
security invoker
return pg_catalog.uuid_hash_extended(p_key, pg_catalog.uuid_hash_extended(p_principal_id, 0));

comment on function pgidem._gate(uuid, uuid) is
  'The number of the advisory lock at which the callers of one key queue up. A foreign lock on the same number can only cause in_progress, never an effect or an answer.';

revoke all on function pgidem._gate(uuid, uuid) from public;
