/*
A live record answers from a plain read. Only an absent or dead one is claimed, behind the gate, which here is held for the
moment of a committed claim, or as long as the transaction of a unit of work.
*/
create or replace function pgidem.idem_claim(
  p_user_id text,
  p_key text,
  p_request_sha256 bytea,
  p_lease interval default null,
  p_retention interval default null,
  p_lock_timeout interval default null,
  p_attempt uuid default null
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
  v_lease interval;
  v_retention interval;
  v_wait interval;
  v_deadline timestamptz;
  v_now timestamptz;
  v_then timestamptz;
  v_token bigint;
  v_timed_out boolean := false;
  r pgidem.claim_result;
begin
  if not pgidem._is_record_key(v_user_id, v_key) then
    perform pgidem._refuse_record_key(v_user_id, v_key);
  end if;
  if octet_length(p_request_sha256) is distinct from 32 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = 'p_request_sha256 does not have 32 bytes.',
      hint = 'Pass the SHA-256 of the request.';
  end if;

  r := pgidem._read_record(v_user_id, v_key, p_request_sha256, p_attempt);
  if r.outcome not in ('absent', 'dead') then
    return r;
  end if;

  if p_lease is null or p_retention is null or p_lock_timeout is null then
    select pgidem._seconds(s.lease), pgidem._seconds(s.retention), pgidem._seconds(s.lock_timeout)
    into v_lease, v_retention, v_wait
    from pgidem.settings s
    where s.singleton;
    if not found then
      -- Raises, and says how to get the row back.
      perform pgidem._duration('settings', null);
    end if;
  end if;
  if p_lease is not null then
    v_lease := pgidem._duration('p_lease', p_lease);
  end if;
  if p_retention is not null then
    v_retention := pgidem._duration('p_retention', p_retention);
  end if;
  if p_lock_timeout is not null then
    v_wait := pgidem._duration('p_lock_timeout', p_lock_timeout);
  end if;
  v_deadline := clock_timestamp() + v_wait;

  if not pg_try_advisory_xact_lock(pgidem._record_gate(v_user_id, v_key)) then
    r := pgidem._await_record(v_user_id, v_key, p_request_sha256, p_attempt, v_deadline);
  end if;

  -- The gate is ours or the answer is there. A record can still come in the way: from a writer that knows no gate.
  for v_try in 1 .. 5 loop
    exit when r.outcome not in ('absent', 'dead') or v_timed_out;
    if r.outcome = 'dead' then
      r := pgidem._take_over(v_user_id, v_key, r.token, p_request_sha256, p_attempt, v_lease, v_retention, v_deadline);
      if r.outcome = 'claimed' then
        return r;
      end if;
      v_timed_out := r.outcome = 'timeout';
    else
      v_now := pgidem._now();
      v_token := pgidem._next_token(null);
      insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, attempt, live_until, retention,
        created_at, expires_at)
      values (v_user_id, v_key, p_request_sha256, v_token, v_token, p_attempt, v_now + v_lease, v_retention,
        v_now, v_now + v_lease + v_retention)
      on conflict on constraint idempotency_record_pkey do nothing;
      if found then
        -- Where the insert took long, as behind a writer that knows no gate, the lease counts from its end.
        v_then := pgidem._now();
        if v_then > v_now + least(v_lease, interval '100 milliseconds') then
          v_now := v_then;
          update pgidem.idempotency_record k
          set live_until = v_now + v_lease,
              created_at = v_now,
              expires_at = v_now + v_lease + v_retention
          where k.user_id = v_user_id
            and k.idem_key = v_key;
        end if;
        r.outcome := 'claimed';
        r.token := v_token;
        r.live_until := v_now + v_lease;
        return r;
      end if;
    end if;
    r := pgidem._read_record(v_user_id, v_key, p_request_sha256, p_attempt);
  end loop;

  if r.outcome in ('absent', 'dead') then
    r := null;
    r.outcome := 'in_progress';
    r.retry_after := 1;
    r.one_time_secret := false;
  end if;
  return r;
end
$$;

comment on function pgidem.idem_claim(text, text, bytea, interval, interval, interval, uuid) is
$$Claims a key for an operation that this database cannot roll back, or says what is recorded for it.

Call it on its own, so that it commits before the operation begins (a driver that begins
transactions by itself calls idem_claim_committed). After claimed: run the operation, then
idem_finish with the token, or idem_release when the operation may be repeated. When the worker
dies, the key is free at the end of the lease. Pass the id that the operation has downstream on to
the provider: a lease cannot keep a worker that was believed dead from acting late.

Called inside a transaction it is a unit of work: claim, effect and response commit together, and
callers of the key wait. Then it is the first statement, outside any savepoint or exception block,
idem_finish with p_require the last, and no error is caught.

A live record answers at once: without waiting, lock or transaction id. All errors of the server
that are not listed here go up unchanged.

Parameters:
p_user_id: whose key it is, 1 to 255 characters.
p_key: what the client sent in Idempotency-Key, 1 to 255 printable ASCII characters.
p_request_sha256: fingerprint of the request: its SHA-256, 32 bytes.
p_lease: how long the claim holds without idem_renew: an interval of more than zero and at most 10
  years (3652.5 days), without months; null means settings.lease. Like the other intervals it is
  not looked at where a live record answers.
p_retention: how long the stored response answers, counted from its finish, an interval like
  p_lease; null means settings.retention.
p_lock_timeout: how long to wait, in total, for other transactions that claim the key: an interval
  like p_lease, of which a single wait lasts at least 1 millisecond and at most 24 days; null means
  settings.lock_timeout.
p_attempt: a UUID of this one call, drawn by the caller: when the answer was lost, the same call
  gets it again, while the claim lives.

Outcomes:
claimed: run the operation; token proves the claim, live_until is the end of the lease.
replay: the same request was answered before: send the stored response. With one_time_secret it held
  a secret that is gone: answer 409 instead.
reused: the key is used for another request, done or running: answer 422 (RFC 9110, section
  15.5.21).
in_progress: another caller runs the key: answer 409 (RFC 9110, section 15.5.10) with Retry-After:
  retry_after, in seconds (RFC 9110, section 10.2.3).

Errors:
22023: an argument is invalid, or settings has no row; nothing was written.
25006: the key would have to be claimed, and the transaction is read-only.
40001: under REPEATABLE READ or SERIALIZABLE: run a new transaction.
55P03: a wait that is not for the key itself, such as for a table lock, lasted 2 seconds.

Example:
-- as the application
select outcome, token is not null as has_token
from pgidem.idem_claim(
  p_user_id => 'user-1',
  p_key => 'order-1',
  p_request_sha256 => sha256('POST /payouts {"amount":1}')
);
--> claimed | t
select outcome, token, retry_after
from pgidem.idem_claim(
  p_user_id => 'user-1',
  p_key => 'order-1',
  p_request_sha256 => sha256('POST /payouts {"amount":1}')
);
--> in_progress |  | 1$$;

revoke all on function pgidem.idem_claim(text, text, bytea, interval, interval, interval, uuid) from public;
