/*
A dead record has a new owner when it still has the token that was read: of any number of callers one gets it. The late
owner, cleanup or an operator may hold the row, and whoever is not to get it must not keep its lock: hence the guarded block,
which both ends the wait and gives the lock back. A table lock is waited for outside: that is no rival of the key and ends as
55P03.
*/
create or replace function pgidem._take_over(
  p_user_id text,
  p_key text,
  p_dead_token bigint,
  p_request_sha256 bytea,
  p_attempt uuid,
  p_lease interval,
  p_retention interval,
  p_deadline timestamptz
)
returns pgidem.claim_result
language plpgsql
volatile
parallel unsafe
security invoker
set lock_timeout = '2s'
as $$
declare
  v_row record;
  v_now timestamptz;
  v_token bigint;
  r pgidem.claim_result;
begin
  r.one_time_secret := false;
  lock table only pgidem.idempotency_record in row exclusive mode;
  begin
    execute format('set local lock_timeout = %L', pgidem._wait_limit(p_deadline));
    select k.token, k.live_until
    into v_row
    from pgidem.idempotency_record k
    where k.user_id = p_user_id
      and k.idem_key = p_key
    for no key update;
    v_now := pgidem._now();
    if v_row.token is distinct from p_dead_token or v_row.live_until > v_now then
      raise sqlstate 'ID999';
    end if;

    v_token := pgidem._next_token(v_row.token);
    update pgidem.idempotency_record k
    set request_sha256 = p_request_sha256,
        token = v_token,
        first_token = case when k.request_sha256 = p_request_sha256 then k.first_token else v_token end,
        attempt = p_attempt,
        state = 'in_progress',
        live_until = v_now + p_lease,
        retention = p_retention,
        response_status = null,
        response_content_type = null,
        response_location = null,
        response_etag = null,
        response_body = null,
        one_time_secret = false,
        created_at = v_now,
        finished_at = null,
        expires_at = v_now + p_lease + p_retention
    where k.user_id = p_user_id
      and k.idem_key = p_key;
    r.outcome := 'claimed';
    r.token := v_token;
    r.live_until := v_now + p_lease;
  exception
    when sqlstate 'ID999' then
      r.outcome := 'lost';
    when lock_not_available then
      r.outcome := 'timeout';
  end;
  return r;
end
$$;

comment on function pgidem._take_over(text, text, bigint, bytea, uuid, interval, interval, timestamptz) is
  'Claims a dead record when it still has the token p_dead_token: claimed, else lost, or timeout when somebody held the row until p_deadline.';

revoke all on function pgidem._take_over(text, text, bigint, bytea, uuid, interval, interval, timestamptz) from public;
