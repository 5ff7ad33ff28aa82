/*
As _await_gate, for the other table.
*/
create or replace function pgidem._await_record(
  p_user_id text,
  p_key text,
  p_request_sha256 bytea,
  p_attempt uuid,
  p_deadline timestamptz
)
returns pgidem.claim_result
language plpgsql
volatile
parallel unsafe
security invoker
set lock_timeout = '2s'
as $$
declare
  v_gate constant bigint := pgidem._record_gate(p_user_id, p_key);
  v_timed_out boolean;
  r pgidem.claim_result;
begin
  r := pgidem._read_record(p_user_id, p_key, p_request_sha256, p_attempt);
  if r.outcome not in ('absent', 'dead') then
    return r;
  end if;

  v_timed_out := not pgidem._queue(v_gate, p_deadline);
  r := pgidem._read_record(p_user_id, p_key, p_request_sha256, p_attempt);
  if r.outcome in ('absent', 'dead') and not v_timed_out then
    begin
      execute format('set local lock_timeout = %L', pgidem._wait_limit(p_deadline));
      perform pg_advisory_xact_lock(v_gate);
      r := pgidem._read_record(p_user_id, p_key, p_request_sha256, p_attempt);
      if r.outcome not in ('absent', 'dead') then
        raise sqlstate 'ID999';
      end if;
    exception
      when sqlstate 'ID999' then
        null;
      when lock_not_available then
        v_timed_out := true;
        r := pgidem._read_record(p_user_id, p_key, p_request_sha256, p_attempt);
    end;
  end if;

  if v_timed_out and r.outcome in ('absent', 'dead') then
    r := null;
    r.outcome := 'in_progress';
    r.retry_after := 1;
    r.one_time_secret := false;
  end if;
  return r;
end
$$;

comment on function pgidem._await_record(text, text, bytea, uuid, timestamptz) is
  'Waits until p_deadline for the transaction that claims the key. Returns what is recorded then, in_progress when the time is over, or absent or dead with the gate held until the end of the transaction.';

revoke all on function pgidem._await_record(text, text, bytea, uuid, timestamptz) from public;
