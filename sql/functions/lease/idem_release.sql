create or replace function pgidem.idem_release(
  p_user_id text,
  p_key text,
  p_token bigint
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
begin
  if not pgidem._is_record_key(v_user_id, v_key) then
    perform pgidem._refuse_record_key(v_user_id, v_key);
  end if;
  if p_token is null then
    perform pgidem._refuse_token(p_token);
  end if;
  delete from pgidem.idempotency_record k
  where k.user_id = v_user_id
    and k.idem_key = v_key
    and k.token = p_token
    and k.state = 'in_progress';
  return found;
end
$$;

comment on function pgidem.idem_release(text, text, bigint) is
$$Gives a claim back, so that the next request with the key runs the operation.

For an operation that failed before its effect, or whose repeat does no harm.

Parameters:
p_user_id: as given to idem_claim.
p_key: as given to idem_claim.
p_token: the token that idem_claim gave.

Returns:
True when the claim was given back; false when the token does not hold it any more, or the operation
is finished.

Errors:
22023: an argument is invalid.
25006: the transaction is read-only.
40001: under REPEATABLE READ or SERIALIZABLE: run a new transaction.
55P03: the record or the table was locked for 2 seconds: call it again.

Example:
-- as the application
select token
from pgidem.idem_claim(
  p_user_id => 'user-1',
  p_key => 'order-4',
  p_request_sha256 => sha256('POST /payouts {"amount":4}')
)
\gset
select pgidem.idem_release(
  p_user_id => 'user-1',
  p_key => 'order-4',
  p_token => :token
);
--> t$$;

revoke all on function pgidem.idem_release(text, text, bigint) from public;
