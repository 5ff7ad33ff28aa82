/*
One plain primary-key read: no lock, no transaction id, nothing written. The clock is read after the row, and so after any
wait of the caller. A replay comes first and in few expressions, since each is prepared anew in every transaction,
and only there the body is read, which can be large.
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
  v_now timestamptz;
begin
  select k.state, k.request_sha256, k.response_status::integer, k.response_body, k.resource_id, k.created_at, k.expires_at, k.xmin
  into v_row
  from pgidem.idempotency_keys k
  where k.principal_id = p_principal_id
    and k.key = p_key;
  if not found then
    return ('absent', null, null, null, false, null, null, null)::pgidem.begin_result;
  end if;

  v_now := pgidem._now();
  if v_row.state = 'completed' and v_row.request_sha256 = p_request_sha256 and v_row.expires_at > v_now then
    return ('replay', v_row.response_status, v_row.response_body::text, v_row.resource_id,
      v_row.response_status < 300 and coalesce(v_row.response_body = '{"one_time_secret": true}', false),
      null, v_row.created_at, v_row.expires_at)::pgidem.begin_result;
  -- Replacing its own row would let one transaction claim a key twice.
  elsif v_row.expires_at <= v_now and not pgidem._mine(v_row.xmin) then
    return ('expired', null, null, null, false, null, null, null)::pgidem.begin_result;
  elsif v_row.expires_at <= v_now or v_row.state = 'in_progress' then
    return ('in_progress', null, null, null, false, 1, v_row.created_at, v_row.expires_at)::pgidem.begin_result;
  end if;
  return ('reused', null, null, null, false, null, v_row.created_at, v_row.expires_at)::pgidem.begin_result;
end
$$;

comment on function pgidem._read(uuid, uuid, bytea) is
  'What is recorded for a key, without waiting: replay, reused or in_progress, else absent or expired. Runs under the settings of the calling function, enable_seqscan = off among them.';

revoke all on function pgidem._read(uuid, uuid, bytea) from public;
