/*
The gate keeps idem_begin from claiming the key meanwhile. Whoever holds it runs the key in a transaction whose row cannot
be seen, so nothing here could forget it. One statement tests the row and deletes it: no writer that knows no gate comes
between.
*/
create or replace function pgidem._forget(
  p_principal_id uuid,
  p_key uuid,
  p_force boolean
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_now timestamptz;
  v_mine boolean;
begin
  if p_principal_id is null or p_key is null then
    return false;
  end if;
  perform pgidem._refuse_running(pgidem._gate(p_principal_id, p_key));

  v_now := pgidem._now();
  delete from pgidem.idempotency_keys k
  where k.principal_id = p_principal_id
    and k.key = p_key
    and (k.state = 'completed' or k.expires_at <= v_now or p_force)
    and not pgidem._mine(k.xmin);
  if found then
    return true;
  end if;

  select pgidem._mine(k.xmin)
  into v_mine
  from pgidem.idempotency_keys k
  where k.principal_id = p_principal_id
    and k.key = p_key;
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

comment on function pgidem._forget(uuid, uuid, boolean) is
  'Deletes what idempotency_keys holds for a key. False when there is nothing; raises ID002 when the key is running.';

revoke all on function pgidem._forget(uuid, uuid, boolean) from public;
