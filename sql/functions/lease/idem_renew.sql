create or replace function pgidem.idem_renew(
  p_user_id text,
  p_key text,
  p_token bigint,
  p_lease interval default null
)
returns boolean
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
  v_now timestamptz;
  v_row record;
begin
  if not pgidem._is_record_key(v_user_id, v_key) then
    perform pgidem._refuse_record_key(v_user_id, v_key);
  end if;
  if p_token is null then
    perform pgidem._refuse_token(p_token);
  end if;
  if p_lease is not null then
    v_lease := pgidem._duration('p_lease', p_lease);
  else
    select s.lease into v_lease from pgidem.settings s where s.singleton;
    v_lease := pgidem._duration('settings.lease', v_lease);
  end if;

  -- The clock is read when the row is held: a wait must not give a lease that is over.
  select k.live_until, k.retention, k.expires_at, k.xmin
  into v_row
  from pgidem.idempotency_record k
  where k.user_id = v_user_id
    and k.idem_key = v_key
    and k.token = p_token
    and k.state = 'in_progress'
  for no key update;
  if not found then
    return false;
  end if;
  v_now := pgidem._now();
  if v_row.live_until <= v_now and not pgidem._mine(v_row.xmin) then
    return false;
  end if;

  if v_row.live_until < v_now + v_lease then
    -- With room for the retention, so that neither the next renewal nor the finish has to move it again.
    update pgidem.idempotency_record k
    set live_until = v_now + v_lease,
        expires_at = case when k.expires_at < v_now + v_lease then v_now + v_lease + k.retention else k.expires_at end
    where k.user_id = v_user_id
      and k.idem_key = v_key;
  end if;
  return true;
end
$$;

comment on function pgidem.idem_renew(text, text, bigint, interval) is
$$Extends the lease of a claim, counted from now. It never makes it shorter.

Call it at a third of the lease. After false stop the operation: another caller may run it.

Parameters:
p_user_id: as given to idem_claim.
p_key: as given to idem_claim.
p_token: the token that idem_claim gave.
p_lease: how long the claim holds from now on, an interval as in idem_claim; null means
  settings.lease.

Returns:
True when the lease holds; false when it has ended, the token does not hold the record any more, or
the operation is finished.

Errors:
22023: an argument is invalid, or settings has no row.
25006: the transaction is read-only.
40001: under REPEATABLE READ or SERIALIZABLE: run a new transaction.
55P03: the record or the table was locked for 2 seconds: call it again.

Example:
-- as the application
select token
from pgidem.idem_claim(
  p_user_id => 'user-1',
  p_key => 'order-5',
  p_request_sha256 => sha256('POST /payouts {"amount":5}')
)
\gset
select pgidem.idem_renew(
  p_user_id => 'user-1',
  p_key => 'order-5',
  p_token => :token,
  p_lease => interval '15 minutes'
);
--> t$$;

revoke all on function pgidem.idem_renew(text, text, bigint, interval) from public;
