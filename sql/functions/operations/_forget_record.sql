/*
As _forget, for the other table, where a committed claim is a lease.
*/
create or replace function pgidem._forget_record(
  p_user_id text,
  p_key text,
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
  perform pgidem._refuse_running(pgidem._record_gate(p_user_id, p_key));

  v_now := pgidem._now();
  delete from pgidem.idempotency_record k
  where k.user_id = p_user_id
    and k.idem_key = p_key
    and (k.state = 'completed' or k.live_until <= v_now or p_force)
    and not pgidem._mine(k.xmin);
  if found then
    return true;
  end if;

  select pgidem._mine(k.xmin)
  into v_mine
  from pgidem.idempotency_record k
  where k.user_id = p_user_id
    and k.idem_key = p_key;
  if not found then
    return false;
  end if;
  raise exception using
    errcode = 'ID002',
    message = 'the key is running',
    detail = case when v_mine then 'This transaction runs it.' else 'A lease is running.' end,
    hint = 'If its worker is dead, pass p_force => true, or wait for the end of the lease: the next request with the key then runs the operation. The claim of this transaction goes with its ROLLBACK.';
end
$$;

comment on function pgidem._forget_record(text, text, boolean) is
  'Deletes what idempotency_record holds for a key. False when there is nothing; raises ID002 when the key is running.';

revoke all on function pgidem._forget_record(text, text, boolean) from public;
