/*
One plain primary-key read: no lock, no transaction id, nothing written. The clock is read after the row, and so after
any wait of the caller.
*/
create or replace function pgidem._read(
  p_principal_id uuid,
  p_key uuid,
  p_request_sha256 bytea
)
returns pgidem.begin_result
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_row record;
  r pgidem.begin_result;
begin
  select k.state, k.request_sha256, k.response_status, k.response_body, k.resource_id, k.created_at, k.expires_at, k.xmin
  into v_row
  from pgidem.idempotency_keys k
  where k.principal_id = p_principal_id
    and k.key = p_key;

  r.one_time_secret := false;
  if not found then
    r.outcome := 'absent';
    return r;
  end if;

  if v_row.expires_at <= pgidem._now() then
    -- Replacing its own row would let one transaction claim a key twice.
    if not pgidem._mine(v_row.xmin) then
      r.outcome := 'expired';
      return r;
    end if;
    r.outcome := 'in_progress';
  elsif v_row.state = 'in_progress' then
    r.outcome := 'in_progress';
  elsif v_row.request_sha256 = p_request_sha256 then
    r.outcome := 'replay';
    r.response_status := v_row.response_status::integer;
    r.response_body := v_row.response_body::text;
    r.resource_id := v_row.resource_id;
    r.one_time_secret := r.response_status < 300 and coalesce(r.response_body = '{"one_time_secret": true}', false);
  else
    r.outcome := 'reused';
  end if;

  if r.outcome = 'in_progress' then
    r.retry_after := 1;
  end if;
  r.created_at := v_row.created_at;
  r.expires_at := v_row.expires_at;
  return r;
end
$$;

comment on function pgidem._read(uuid, uuid, bytea) is
  'What is recorded for a key, without waiting: replay, reused or in_progress, else absent or expired. Runs under the settings of the calling function, enable_seqscan = off among them.';

revoke all on function pgidem._read(uuid, uuid, bytea) from public;
