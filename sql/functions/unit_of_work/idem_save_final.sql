/*
The 4xx was decided in a transaction that is rolled back by now, so another run can have the key or have finished
meanwhile. Therefore this is a claim like any other, through the same gate, which is completed at once: a live row is
never touched, and the caller answers with what is recorded.
*/
create or replace function pgidem.idem_save_final(
  p_principal_id uuid,
  p_key uuid,
  p_action text,
  p_request_sha256 bytea,
  p_status integer,
  p_body jsonb,
  p_ttl interval default null,
  p_lock_timeout interval default null
)
returns pgidem.begin_result
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off
as $$
declare
  r pgidem.begin_result;
begin
  if p_status is null or p_status not between 400 and 499 or p_status in (401, 408, 425, 428, 429) then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid status',
      detail = format('p_status is %s; idem_save_final stores 400 to 499 without 401, 408, 425, 428 and 429.', coalesce(p_status::text, 'null')),
      hint = 'Answer any other status without storing it: the client may repeat the request with the same key.';
  end if;
  if p_status = 409 and p_body ->> 'code' = 'request_in_progress' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'a response that says request_in_progress is not final',
      detail = 'Stored, it would answer every repeat although the other run has long ended.',
      hint = 'Answer it without storing it.';
  end if;

  r := pgidem.idem_begin(p_principal_id, p_key, p_action, p_request_sha256, p_ttl, p_lock_timeout);
  if r.outcome = 'claimed' then
    r := pgidem._complete(p_principal_id, p_key, p_status, p_body, false);
  end if;
  return r;
end
$$;

comment on function pgidem.idem_save_final(uuid, uuid, text, bytea, integer, jsonb, interval, interval) is
$$Stores a final 4xx after the transaction of the operation was rolled back, in a short transaction of its own.

Parameters:
p_principal_id, p_key, p_action, p_request_sha256, p_ttl, p_lock_timeout: as given to idem_begin.
p_status: HTTP status, 400 to 499 without 401, 408, 425, 428 and 429, which a repeat may change.
p_body: the JSON body, null for none. A 409 whose member code is request_in_progress is refused.

Outcomes:
stored: by this call, with the stored body as text: send that.
replay: another run stored a response for the same request meanwhile: send that one, as a replay.
reused: the key answers another request; answer 422.
in_progress: another run holds the key; answer 409 and Retry-After.
Never send the unrecorded 4xx itself after an outcome other than stored.

Errors: as idem_begin, and 22023 for another status or body.$$;

revoke all on function pgidem.idem_save_final(uuid, uuid, text, bytea, integer, jsonb, interval, interval) from public;
