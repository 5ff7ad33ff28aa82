/*
The gate is busy: another transaction runs the key. First wait for its end. When the row is still not there, the first run
was rolled back: wait in exclusive mode, where one waiter becomes the next runner. A waiter that finds a response there frees the
gate at once by undoing the subtransaction; kept until the end of its transaction it would hold up all others. The two
waits do not loop, so nobody starves, and they share one deadline, however many owners roll back one after another.
*/
create or replace function pgidem._await_gate(
  p_principal_id uuid,
  p_key uuid,
  p_request_sha256 bytea,
  p_deadline timestamptz
)
returns pgidem.begin_result
language plpgsql
volatile
parallel unsafe
security invoker
set lock_timeout = '2s'
as $$
declare
  v_gate constant bigint := pgidem._gate(p_principal_id, p_key);
  v_timed_out boolean;
  r pgidem.begin_result;
begin
  -- Whoever has the gate may have found a stored response himself, and not have ended his transaction yet.
  r := pgidem._read(p_principal_id, p_key, p_request_sha256);
  if r.outcome not in ('absent', 'expired') then
    return r;
  end if;

  v_timed_out := not pgidem._queue(v_gate, p_deadline);
  r := pgidem._read(p_principal_id, p_key, p_request_sha256);
  if r.outcome in ('absent', 'expired') and not v_timed_out then
    begin
      execute format('set local lock_timeout = %L', pgidem._wait_limit(p_deadline));
      perform pg_advisory_xact_lock(v_gate);
      r := pgidem._read(p_principal_id, p_key, p_request_sha256);
      if r.outcome not in ('absent', 'expired') then
        raise sqlstate 'ID999';
      end if;
    exception
      when sqlstate 'ID999' then
        null;
      when lock_not_available then
        v_timed_out := true;
        r := pgidem._read(p_principal_id, p_key, p_request_sha256);
    end;
  end if;

  if v_timed_out and r.outcome in ('absent', 'expired') then
    r.outcome := 'in_progress';
    r.retry_after := 1;
  end if;
  return r;
end
$$;

comment on function pgidem._await_gate(uuid, uuid, bytea, timestamptz) is
  'Waits until p_deadline for the transaction that runs the key. Returns what is recorded then, in_progress when the time is over, or absent or expired with the gate held until the end of the transaction.';

revoke all on function pgidem._await_gate(uuid, uuid, bytea, timestamptz) from public;
