create or replace function pgidem.idem_finish(
  p_user_id text,
  p_key text,
  p_token bigint,
  p_status integer,
  p_content_type text,
  p_location text,
  p_etag text,
  p_body bytea,
  p_one_time_secret boolean default false,
  p_require boolean default false
)
returns pgidem.claim_result
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off
as $$
declare
  -- The caller's text may come in a collation of its own.
  v_user_id constant text collate "C" := p_user_id;
  v_key constant text collate "C" := p_key;
  v_secret constant boolean := coalesce(p_one_time_secret, false);
  v_content_type constant text := case when not v_secret then p_content_type end;
  v_location constant text := case when not v_secret then p_location end;
  v_etag constant text := case when not v_secret then p_etag end;
  v_body constant bytea := case when not v_secret then p_body end;
  v_bad_status constant boolean := p_status is null or p_status not between 200 and 599;
  v_bad_header constant boolean := concat(p_content_type, p_location, p_etag) collate "C" ~ E'[\\u0001-\\u0008\\u000a-\\u001f\\u007f]';
  v_retention interval;
  v_now timestamptz;
  v_then timestamptz;
  r pgidem.claim_result;
begin
  if not pgidem._is_record_key(v_user_id, v_key) then
    perform pgidem._refuse_record_key(v_user_id, v_key);
  end if;
  if p_token is null then
    perform pgidem._refuse_token(p_token);
  end if;
  if v_bad_status or v_bad_header then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = concat_ws(' ',
        case when v_bad_status then
          format('p_status is %s; idem_finish stores 200 to 599.', coalesce(p_status::text, 'null')) end,
        case when v_bad_header then
          'p_content_type, p_location or p_etag holds a control character.' end),
      hint = 'Pass the token that idem_claim gave, the HTTP status and header values of the response.';
  end if;

  v_now := pgidem._now();
  update pgidem.idempotency_record k
  set state = 'completed',
      live_until = v_now + k.retention,
      response_status = p_status,
      response_content_type = v_content_type,
      response_location = v_location,
      response_etag = v_etag,
      response_body = v_body,
      one_time_secret = v_secret,
      finished_at = v_now,
      expires_at = greatest(k.expires_at, v_now + k.retention)
  where k.user_id = v_user_id
    and k.idem_key = v_key
    and k.token = p_token
    and k.state = 'in_progress'
  returning k.retention
  into v_retention;
  if found then
    -- Where the update took long, as behind somebody who held the row, the retention counts from its end.
    v_then := pgidem._now();
    if v_then > v_now + least(v_retention, interval '100 milliseconds') then
      v_now := v_then;
      update pgidem.idempotency_record k
      set live_until = v_now + v_retention,
          finished_at = v_now,
          expires_at = greatest(k.expires_at, v_now + v_retention)
      where k.user_id = v_user_id
        and k.idem_key = v_key;
    end if;
    r.outcome := 'stored';
    r.live_until := v_now + v_retention;
    r.response_status := p_status;
    r.content_type := v_content_type;
    r.location := v_location;
    r.etag := v_etag;
    r.response_body := v_body;
    r.one_time_secret := v_secret;
    return r;
  end if;

  r := pgidem._recorded(v_user_id, v_key, p_token);
  if r.outcome <> 'stored' and p_require then
    raise exception using
      errcode = 'ID003',
      message = 'the lease is lost',
      detail = 'The record of the key does not have this token: another caller took it over when the lease had ended, or it was released or forgotten.',
      hint = 'Roll back what was done under this claim, and answer with what idem_claim says now.';
  end if;
  return r;
end
$$;

comment on function pgidem.idem_finish(text, text, bigint, integer, text, text, text, bytea, boolean, boolean) is
$$Stores the response of the operation that idem_claim claimed, if the token still holds the record.

With a token that is no longer that of the record it changes nothing and says what is recorded now:
the caller has lost its lease and must not answer with its own response. The lease may have ended,
as long as nobody took the key over. For an effect in this database call it in the transaction of
the effect, with p_require, and commit only after stored.

Parameters:
p_user_id: as given to idem_claim.
p_key: as given to idem_claim.
p_token: the token that idem_claim gave.
p_status: HTTP status of the response, 200 to 599.
p_content_type: its header Content-Type, null for none.
p_location: its header Location, null for none.
p_etag: its header ETag, null for none.
p_body: its body, byte for byte, null for none.
p_one_time_secret: true when the response holds a secret that is shown once. Then only the status is
  stored; pass null for the rest, so that the secret never reaches the server.
p_require: true to raise instead of returning another outcome than stored.

Outcomes:
stored: send your response; again for the same token, with what it stored first.
replay: another caller answered the same request meanwhile: send the stored response.
in_progress: another caller runs the key, or it is not sure what its response answers: answer 409
  (RFC 9110, section 15.5.10) with Retry-After: retry_after, in seconds (RFC 9110, section 10.2.3).

Errors:
22023: an argument is invalid.
25006: the transaction is read-only.
40001: under REPEATABLE READ or SERIALIZABLE: run a new transaction.
55P03: the record or the table was locked for 2 seconds: call it again.
ID003: the lease is lost; with p_require only.

Example:
-- as the application
select token
from pgidem.idem_claim(
  p_user_id => 'user-1',
  p_key => 'order-3',
  p_request_sha256 => sha256('POST /payouts {"amount":3}')
)
\gset
select outcome
from pgidem.idem_finish(
  p_user_id => 'user-1',
  p_key => 'order-3',
  p_token => :token,
  p_status => 201,
  p_content_type => 'text/plain',
  p_location => '/payouts/3',
  p_etag => null,
  p_body => 'paid'
);
--> stored
select outcome, response_status, location, convert_from(response_body, 'UTF8')
from pgidem.idem_claim(
  p_user_id => 'user-1',
  p_key => 'order-3',
  p_request_sha256 => sha256('POST /payouts {"amount":3}')
);
--> replay | 201 | /payouts/3 | paid$$;

revoke all on function pgidem.idem_finish(text, text, bigint, integer, text, text, text, bytea, boolean, boolean) from public;
