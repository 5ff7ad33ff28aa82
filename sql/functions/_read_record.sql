/*
One plain primary-key read: no lock, no transaction id, nothing written. The clock is read after the row, and so after
any wait of the caller.
*/
create or replace function pgidem._read_record(
  p_user_id text,
  p_key text,
  p_request_sha256 bytea,
  p_attempt uuid
)
returns pgidem.claim_result
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_row record;
  r pgidem.claim_result;
begin
  select k.state, k.request_sha256, k.token, k.attempt, k.live_until, k.xmin, k.response_status, k.response_content_type,
    k.response_location, k.response_etag, k.response_body, k.one_time_secret
  into v_row
  from pgidem.idempotency_record k
  where k.user_id = p_user_id
    and k.idem_key = p_key;

  r.one_time_secret := false;
  if not found then
    r.outcome := 'absent';
    return r;
  end if;

  r.live_until := v_row.live_until;
  -- Taking over its own row would let one transaction claim a key twice.
  if v_row.live_until <= pgidem._now() and not pgidem._mine(v_row.xmin) then
    r.outcome := 'dead';
    r.token := v_row.token;
  elsif v_row.request_sha256 <> p_request_sha256 then
    r.outcome := 'reused';
  elsif v_row.state = 'completed' then
    r.outcome := 'replay';
    r.response_status := v_row.response_status::integer;
    r.content_type := v_row.response_content_type;
    r.location := v_row.response_location;
    r.etag := v_row.response_etag;
    r.response_body := v_row.response_body;
    r.one_time_secret := v_row.one_time_secret;
  elsif v_row.attempt = p_attempt then
    r.outcome := 'claimed';
    r.token := v_row.token;
  else
    r.outcome := 'in_progress';
    r.retry_after := 1;
  end if;
  return r;
end
$$;

comment on function pgidem._read_record(text, text, bytea, uuid) is
  'What is recorded for a key, without waiting: replay, reused, in_progress, or claimed for the attempt that runs it; else absent, or dead with the token of the row.';

revoke all on function pgidem._read_record(text, text, bytea, uuid) from public;
