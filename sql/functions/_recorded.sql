/*
The answer for a caller that does not hold the record. Its token tells what it asked for: from first_token on, all claims
were for the same request. Where that is not sure the stored response may answer another request, so in_progress makes
the client come back and have its fingerprint compared.
*/
create or replace function pgidem._recorded(
  p_user_id text,
  p_key text,
  p_token bigint
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
  select k.token, k.first_token, k.state, k.live_until, k.response_status, k.response_content_type, k.response_location,
    k.response_etag, k.response_body, k.one_time_secret
  into v_row
  from pgidem.idempotency_record k
  where k.user_id = p_user_id
    and k.idem_key = p_key;

  r.one_time_secret := false;
  if found and v_row.state = 'completed' and v_row.token >= p_token and v_row.first_token <= p_token
     and (v_row.token = p_token or v_row.live_until > pgidem._now()) then
    r.outcome := case when v_row.token = p_token then 'stored' else 'replay' end;
    r.live_until := v_row.live_until;
    r.response_status := v_row.response_status::integer;
    r.content_type := v_row.response_content_type;
    r.location := v_row.response_location;
    r.etag := v_row.response_etag;
    r.response_body := v_row.response_body;
    r.one_time_secret := v_row.one_time_secret;
    return r;
  end if;

  r.outcome := 'in_progress';
  r.retry_after := 1;
  if found and v_row.state = 'in_progress' then
    r.live_until := v_row.live_until;
  end if;
  return r;
end
$$;

comment on function pgidem._recorded(text, text, bigint) is
  'What is recorded for a key, as far as the holder of p_token may know it: stored by that token, replay, or in_progress.';

revoke all on function pgidem._recorded(text, text, bigint) from public;
