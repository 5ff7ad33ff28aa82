/*
Cleanup, a cascade or an operator may hold the expired row, and an insert would wait behind that without the caller's
bound. A table lock is waited for outside the guarded block: that is no rival of the key and ends as 55P03.
*/
create or replace function pgidem._remove_expired(
  p_principal_id uuid,
  p_key uuid,
  p_deadline timestamptz
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set lock_timeout = '2s'
as $$
declare
  v_now timestamptz;
begin
  lock table only pgidem.idempotency_keys in row exclusive mode;
  v_now := pgidem._now();
  execute format('set local lock_timeout = %L', pgidem._wait_limit(p_deadline));
  begin
    delete from pgidem.idempotency_keys k
    where k.principal_id = p_principal_id
      and k.key = p_key
      and k.expires_at <= v_now;
  exception
    when lock_not_available then
      return false;
  end;
  return true;
end
$$;

comment on function pgidem._remove_expired(uuid, uuid, timestamptz) is
  'Deletes the row of a key if it has expired, waiting until p_deadline for whoever holds it. False when the time is over.';

revoke all on function pgidem._remove_expired(uuid, uuid, timestamptz) from public;
