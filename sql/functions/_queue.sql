/*
Shared mode, inside a subtransaction that gives the gate back: so one COMMIT of the runner wakes all who queue at once.
*/
create or replace function pgidem._queue(
  p_gate bigint,
  p_deadline timestamptz
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set lock_timeout = '2s'
as $$
begin
  execute format('set local lock_timeout = %L', pgidem._wait_limit(p_deadline));
  perform pg_advisory_xact_lock_shared(p_gate);
  raise sqlstate 'ID999';
exception
  when sqlstate 'ID999' then
    return true;
  when lock_not_available then
    return false;
end
$$;

comment on function pgidem._queue(bigint, timestamptz) is
  'Waits until p_deadline for the end of the transaction that holds a gate, and holds nothing itself. False when the time is over.';

revoke all on function pgidem._queue(bigint, timestamptz) from public;
