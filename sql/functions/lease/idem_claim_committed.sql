/*
A COMMIT allows no SET clause and no rights of the owner. So this body calls nothing unqualified, and all work stands in
idem_claim.
*/
create or replace procedure pgidem.idem_claim_committed(
  p_user_id text,
  p_key text,
  p_request_sha256 bytea,
  p_lease interval default null,
  p_retention interval default null,
  p_lock_timeout interval default null,
  p_attempt uuid default null,
  inout outcome text default null,
  inout token bigint default null,
  inout retry_after integer default null,
  inout live_until timestamptz default null,
  inout response_status integer default null,
  inout content_type text default null,
  inout location text default null,
  inout etag text default null,
  inout response_body bytea default null,
  inout one_time_secret boolean default null
)
language plpgsql
security invoker
as $$
declare
  r pgidem.claim_result;
begin
  r := pgidem.idem_claim(p_user_id, p_key, p_request_sha256, p_lease, p_retention, p_lock_timeout, p_attempt);
  commit;
  outcome := r.outcome;
  token := r.token;
  retry_after := r.retry_after;
  live_until := r.live_until;
  response_status := r.response_status;
  content_type := r.content_type;
  location := r.location;
  etag := r.etag;
  response_body := r.response_body;
  one_time_secret := r.one_time_secret;
end
$$;

comment on procedure pgidem.idem_claim_committed(text, text, bytea, interval, interval, interval, uuid, text, bigint, integer, timestamptz, integer, text, text, text, bytea, boolean) is
$$Claims a key as idem_claim does and commits the claim before it returns.

For callers whose driver begins transactions by itself: inside one it fails before the operation can
begin, where idem_claim would answer claimed for a claim that nobody else can see. Call it in
autocommit mode.

Parameters:
p_user_id: as in idem_claim.
p_key: as in idem_claim.
p_request_sha256: as in idem_claim, 32 bytes.
p_lease: as in idem_claim.
p_retention: as in idem_claim.
p_lock_timeout: as in idem_claim.
p_attempt: as in idem_claim.
outcome: and all that follow are results, with nothing to pass.
token: the result of that name.
retry_after: the result of that name, in seconds.
live_until: the result of that name.
response_status: the result of that name.
content_type: the result of that name.
location: the result of that name.
etag: the result of that name.
response_body: the result of that name.
one_time_secret: the result of that name.

Outcomes:
claimed: as in idem_claim; the claim is committed.
replay: as in idem_claim.
reused: as in idem_claim.
in_progress: as in idem_claim.

Errors:
22023: as in idem_claim.
25006: as in idem_claim.
2D000: inside a transaction block; nothing is claimed once that is rolled back.
55P03: as in idem_claim.

Example:
-- as the application
call pgidem.idem_claim_committed(
  p_user_id => 'user-1',
  p_key => 'order-2',
  p_request_sha256 => sha256('POST /payouts {"amount":2}')
)
\gset
select :token > 0 as has_token;
--> t$$;

revoke all on procedure pgidem.idem_claim_committed(text, text, bytea, interval, interval, interval, uuid, text, bigint, integer, timestamptz, integer, text, text, text, bytea, boolean) from public;
