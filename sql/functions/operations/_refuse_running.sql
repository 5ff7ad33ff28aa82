create or replace function pgidem._refuse_running(
  p_gate bigint
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_runner integer;
begin
  if pg_try_advisory_xact_lock(p_gate) then
    return;
  end if;
  v_runner := pgidem._runner(p_gate);
  raise exception using
    errcode = 'ID002',
    message = 'the key is running',
    detail = case
      when v_runner > 0 then format('The transaction of session %s runs it.', v_runner)
      when v_runner = 0 then 'A prepared transaction runs it.'
      else 'Its gate was taken.'
    end,
    hint = 'Wait for the end of the transaction, or end it by pg_terminate_backend or ROLLBACK PREPARED: its claim vanishes with it. p_force does not help here.';
end
$$;

comment on function pgidem._refuse_running(bigint) is
  'Takes the gate of a key until the end of the transaction; raises ID002 when another transaction holds it, and so runs the key.';

revoke all on function pgidem._refuse_running(bigint) from public;
