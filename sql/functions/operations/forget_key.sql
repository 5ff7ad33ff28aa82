/*
The gate keeps begin from claiming the key between the look and the delete. Whoever holds it runs the key in a
transaction whose row cannot be seen, so nothing here could forget it.
*/
create or replace function pgidem.forget_key(
  p_user_id text,
  p_key text,
  p_force boolean default false
)
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off
as $$
declare
  v_principal_id constant uuid := pgidem._uuid(p_user_id);
  v_key constant uuid := pgidem._uuid(p_key);
  v_force constant boolean := coalesce(p_force, false);
  v_now timestamptz;
begin
  if p_user_id is null or p_key is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = concat_ws(' ', case when p_user_id is null then 'p_user_id is null.' end, case when p_key is null then 'p_key is null.' end),
      hint = 'Pass the principal and the key as text, a UUID in its form of 36 characters.';
  end if;
  if v_principal_id is null or v_key is null then
    return false;
  end if;

  if not pg_try_advisory_xact_lock(pgidem._gate(v_principal_id, v_key)) then
    raise exception using
      errcode = 'ID002',
      message = 'the key is running',
      detail = format('The transaction of session %s runs it.', coalesce(pgidem._runner(v_principal_id, v_key)::text, '(just ended)')),
      hint = 'Wait for its end, or end it with pg_terminate_backend: its claim vanishes with it. p_force does not help here.';
  end if;

  v_now := pgidem._now();
  if exists (
    select from pgidem.idempotency_keys k
    where k.principal_id = v_principal_id
      and k.key = v_key
      and k.state = 'in_progress'
      and (pgidem._mine(k.xmin) or k.expires_at > v_now and not v_force)
  ) then
    raise exception using
      errcode = 'ID002',
      message = 'the key is running',
      detail = 'Its claim was committed without idem_complete, or belongs to this transaction.',
      hint = 'If no caller works on it any more, pass p_force => true: the next request with the key then runs the operation.';
  end if;

  delete from pgidem.idempotency_keys k
  where k.principal_id = v_principal_id
    and k.key = v_key;
  return found;
end
$$;

comment on function pgidem.forget_key(text, text, boolean) is
$$Deletes what is recorded for one key, so that the next request with it runs the operation again. For a stored answer that must not be replayed any longer, and for a key that is stuck because a caller committed without idem_complete.

Parameters:
p_user_id: the principal; a UUID in its form of 36 characters.
p_key: the key, likewise.
p_force: true to forget a committed claim too. Find out first that no caller works on it: the effect can happen twice.

Returns whether there was something to forget.
Errors: ID002 when the key is running: in an open transaction, or, without p_force, by a committed claim. 22023 when an argument is null. 55P03 after 2 seconds behind a lock.
Example: select pgidem.forget_key('0192f0c1-2345-7abc-8def-0123456789ab', '0192f0c1-6789-7abc-8def-0123456789ab');$$;

revoke all on function pgidem.forget_key(text, text, boolean) from public;
