/*
The gate keeps idem_begin from claiming the key meanwhile. Whoever holds it runs the key in a transaction whose row cannot
be seen, so nothing here could forget it. One statement tests the row and deletes it: no writer that knows no gate comes
between.
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
  v_runner integer;
  v_mine boolean;
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
    v_runner := pgidem._runner(v_principal_id, v_key);
    raise exception using
      errcode = 'ID002',
      message = 'the key is running',
      detail = case
        when v_runner > 0 then format('The transaction of session %s runs it.', v_runner)
        when v_runner = 0 then 'A prepared transaction runs it.'
        else 'Its gate was taken.'
      end,
      hint = 'Wait for the end of the transaction, or end it by pg_terminate_backend or ROLLBACK PREPARED: its claim vanishes with it. p_force does not help here.';
  end if;

  v_now := pgidem._now();
  delete from pgidem.idempotency_keys k
  where k.principal_id = v_principal_id
    and k.key = v_key
    and (k.state = 'completed' or k.expires_at <= v_now or v_force)
    and not pgidem._mine(k.xmin);
  if found then
    return true;
  end if;

  select pgidem._mine(k.xmin)
  into v_mine
  from pgidem.idempotency_keys k
  where k.principal_id = v_principal_id
    and k.key = v_key;
  if not found then
    return false;
  end if;
  raise exception using
    errcode = 'ID002',
    message = 'the key is running',
    detail = case when v_mine then 'This transaction runs it.' else 'Its claim was committed without idem_complete.' end,
    hint = 'If no caller works on a committed claim any more, pass p_force => true: the next request with the key then runs the operation. The claim of this transaction goes with its ROLLBACK.';
end
$$;

comment on function pgidem.forget_key(text, text, boolean) is
$$Deletes what is recorded for one key, so that the next request with it runs the operation again.

For a stored answer that must not be replayed any longer, and for a key that is stuck because a
caller committed without idem_complete.

Parameters:
p_user_id: the principal; a UUID in its form of 36 characters (RFC 9562).
p_key: the key, likewise.
p_force: true to forget a committed claim too. Find out first that no caller works on it: the effect
  can happen twice.

Returns:
True when there was something to forget, else false.

Errors:
22023: p_user_id or p_key is null.
55P03: a lock was held for 2 seconds.
ID002: the key is running: in an open transaction, this one included, or, without p_force, by a
  committed claim.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');
select outcome
from pgidem.idem_save_final(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000007',
  p_action => 'delete_payment',
  p_request_sha256 => sha256('DELETE /payments/7'),
  p_status => 404,
  p_body => '{"code": "not_found"}'
);
--> stored

-- as an operator
select pgidem.forget_key(
  p_user_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000007'
);
--> t$$;

revoke all on function pgidem.forget_key(text, text, boolean) from public;
