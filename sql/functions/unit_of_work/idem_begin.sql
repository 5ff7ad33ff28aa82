/*
The primary key decides who runs; the gate in front of it only orders the callers, so that a wait has one total bound,
one COMMIT wakes all waiters and the fast path needs no subtransaction. A stored response answers before the gate: a
replay locks nothing and writes nothing.
*/
create or replace function pgidem.idem_begin(
  p_principal_id uuid,
  p_key uuid,
  p_action text,
  p_request_sha256 bytea,
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
  v_ttl interval;
  v_wait interval;
  v_deadline timestamptz;
  v_now timestamptz;
  r pgidem.begin_result;
begin
  if p_principal_id is null or p_key is null or p_action is null or octet_length(p_request_sha256) is distinct from 32 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = concat_ws(' ',
        case when p_principal_id is null then 'p_principal_id is null.' end,
        case when p_key is null then 'p_key is null.' end,
        case when p_action is null then 'p_action is null.' end,
        case when octet_length(p_request_sha256) is distinct from 32 then 'p_request_sha256 does not have 32 bytes.' end),
      hint = 'Pass the principal, the key, the name of the operation and the SHA-256 of the request.';
  end if;

  r := pgidem._read(p_principal_id, p_key, p_request_sha256);
  if r.outcome not in ('absent', 'expired') then
    return r;
  end if;

  if p_ttl is null or p_lock_timeout is null then
    select pgidem._seconds(s.key_ttl), pgidem._seconds(s.lock_timeout)
    into v_ttl, v_wait
    from pgidem.settings s
    where s.singleton;
    if not found then
      -- Raises, and says how to get the row back.
      perform pgidem._duration('settings', null);
    end if;
  end if;
  if p_ttl is not null then
    v_ttl := pgidem._duration('p_ttl', p_ttl);
  end if;
  if p_lock_timeout is not null then
    v_wait := pgidem._duration('p_lock_timeout', p_lock_timeout);
  end if;
  v_deadline := clock_timestamp() + v_wait;

  if not pg_try_advisory_xact_lock(pgidem._gate(p_principal_id, p_key)) then
    r := pgidem._await_gate(p_principal_id, p_key, p_request_sha256, v_deadline);
  end if;

  -- The gate is ours or the answer is there. A row can still come in the way: from a writer that knows no gate.
  for v_attempt in 1 .. 5 loop
    exit when r.outcome not in ('absent', 'expired');
    if r.outcome = 'expired' and not pgidem._remove_expired(p_principal_id, p_key, v_deadline) then
      r := pgidem._read(p_principal_id, p_key, p_request_sha256);
      exit;
    end if;

    v_now := pgidem._now();
    insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, created_at, expires_at)
    values (p_principal_id, p_key, p_action, p_request_sha256, v_now, v_now + v_ttl)
    on conflict on constraint idempotency_keys_pkey do nothing;
    if found then
      return ('claimed', null, null, null, false, null, v_now, v_now + v_ttl)::pgidem.begin_result;
    end if;
    r := pgidem._read(p_principal_id, p_key, p_request_sha256);
  end loop;

  if r.outcome in ('absent', 'expired') then
    r.outcome := 'in_progress';
    r.retry_after := 1;
  end if;
  return r;
end
$$;

comment on function pgidem.idem_begin(uuid, uuid, text, bytea, interval, interval) is
$$Claims a key for the operation that follows in this transaction, or says what is recorded for it.

Call it as the first statement of an open transaction, outside any savepoint or exception block, and
never catch its error. After claimed: run the operation, call idem_complete as the last statement,
COMMIT, and check that the command tag is COMMIT. After anything else: ROLLBACK. Use one key per
transaction. Outside a transaction block the claim commits alone and the key is stuck until its TTL
ends or forget_key frees it.

A stored response answers at once: a replay or reuse waits for nobody, locks nothing and writes
nothing. All errors of the server that are not listed here go up unchanged.

Parameters:
p_principal_id: whose key it is. An unknown principal fails at COMMIT.
p_key: what the client sent in Idempotency-Key, as a UUID (RFC 9562).
p_action: name of the operation, for operators; never compared.
p_request_sha256: fingerprint of the request: its SHA-256, 32 bytes. Take a JSON body in the form of
  RFC 8785, so that a repeat may write the same JSON in another way.
p_ttl: how long the stored response answers, counted from now: an interval of more than zero and at
  most 10 years (3652.5 days), without months; null means settings.key_ttl. Like p_lock_timeout it
  is not looked at where a row that is recorded answers.
p_lock_timeout: how long to wait, in total, for other transactions that run the key: an interval
  like p_ttl, of which a single wait lasts at least 1 millisecond and at most 24 days; null means
  settings.lock_timeout.

Outcomes:
claimed: run the operation; the claim commits or vanishes with this transaction.
replay: the same request was answered before: send response_status and response_body. With
  one_time_secret the body held a secret that is gone: answer 409 instead.
reused: the key was used for another request: answer 422 (RFC 9110, section 15.5.21), as
  draft-ietf-httpapi-idempotency-key-header has it.
in_progress: another transaction runs the key and the wait is over, or a caller committed without
  idem_complete, or this transaction has claimed the key before: answer 409 (RFC 9110, section
  15.5.10), as the draft has it, with Retry-After: retry_after, in seconds (RFC 9110, section
  10.2.3).

Errors:
22023: an argument is invalid, or settings has no row; nothing was written.
23503: at COMMIT, naming idempotency_keys_principal_id_fkey: the principal is unknown.
25006: the key would have to be claimed, and the transaction is read-only.
40001: under REPEATABLE READ or SERIALIZABLE: run a new transaction.
55P03: a wait that is not for the key itself, such as for a table lock, lasted 2 seconds.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');

begin;
select outcome
from pgidem.idem_begin(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000001',
  p_action => 'create_payment',
  p_request_sha256 => sha256('POST /payments {"amount":1}')
);
--> claimed
-- the operation runs here, in this transaction
select pgidem.idem_complete(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000001',
  p_status => 201,
  p_body => '{"amount": 1}'
);
--> {"amount": 1}
commit;

-- the repeat
begin;
select outcome, response_status, response_body
from pgidem.idem_begin(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000001',
  p_action => 'create_payment',
  p_request_sha256 => sha256('POST /payments {"amount":1}')
);
--> replay | 201 | {"amount": 1}
rollback;$$;

revoke all on function pgidem.idem_begin(uuid, uuid, text, bytea, interval, interval) from public;
