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
$$Stores a final 4xx after the operation was rolled back, in a short transaction of its own.

It claims the key like idem_begin, with the same waits, and completes it at once. Another run can
have come between: never send the unrecorded 4xx itself after an outcome other than stored.

Parameters:
p_principal_id: as given to idem_begin.
p_key: as given to idem_begin.
p_action: as given to idem_begin.
p_request_sha256: as given to idem_begin, 32 bytes.
p_status: HTTP status, 400 to 499 (RFC 9110, section 15.5) without 401, 408, 425 by RFC 8470, 428
  and 429 by RFC 6585, which a repeat may change.
p_body: the JSON body (RFC 8259), null for none. A 409 whose member code is request_in_progress is
  refused.
p_ttl: how long the stored response answers, counted from now, as in idem_begin.
p_lock_timeout: how long to wait, in total, for other transactions that run the key, as in
  idem_begin.

Outcomes:
stored: by this call: send response_status and response_body.
replay: another run stored a response for the same request meanwhile: send that one, as a replay.
reused: the key answers another request: answer 422 (RFC 9110, section 15.5.21).
in_progress: another run holds the key: answer 409 (RFC 9110, section 15.5.10) with Retry-After:
  retry_after, in seconds (RFC 9110, section 10.2.3).

Errors:
22023: an argument is invalid, among them another status or body, or settings has no row; nothing
  was written.
23503: at COMMIT, naming idempotency_keys_principal_id_fkey: the principal is unknown.
25006: the response would have to be stored, and the transaction is read-only.
40001: under REPEATABLE READ or SERIALIZABLE: run a new transaction.
55P03: a wait that is not for the key itself, such as for a table lock, lasted 2 seconds.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');

begin;
select outcome
from pgidem.idem_begin(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000003',
  p_action => 'delete_payment',
  p_request_sha256 => sha256('DELETE /payments/7')
);
--> claimed
-- the operation finds no such payment: undo what it did, and the claim
rollback;

select outcome, response_status, response_body
from pgidem.idem_save_final(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000003',
  p_action => 'delete_payment',
  p_request_sha256 => sha256('DELETE /payments/7'),
  p_status => 404,
  p_body => '{"code": "not_found"}'
);
--> stored | 404 | {"code": "not_found"}$$;

revoke all on function pgidem.idem_save_final(uuid, uuid, text, bytea, integer, jsonb, interval, interval) from public;
