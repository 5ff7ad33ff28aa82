/*
The lock is what a takeover waits for. Without it the lease could end, and the key be taken over, before the caller commits.
*/
create or replace function pgidem.idem_assert_lease(
  p_user_id text,
  p_key text,
  p_token bigint
)
returns void
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
  v_row record;
begin
  if not pgidem._is_record_key(v_user_id, v_key) then
    perform pgidem._refuse_record_key(v_user_id, v_key);
  end if;
  if p_token is null then
    perform pgidem._refuse_token(p_token);
  end if;
  select k.live_until, k.xmin
  into v_row
  from pgidem.idempotency_record k
  where k.user_id = v_user_id
    and k.idem_key = v_key
    and k.token = p_token
    and k.state = 'in_progress'
  for share;
  if not found or v_row.live_until <= pgidem._now() and not pgidem._mine(v_row.xmin) then
    raise exception using
      errcode = 'ID003',
      message = 'the lease is lost',
      detail = 'The lease has ended, or another caller has the key, or the operation was finished.',
      hint = 'Roll back what was done under this claim, and answer with what idem_claim says now.';
  end if;
end
$$;

comment on function pgidem.idem_assert_lease(text, text, bigint) is
$$Makes sure that the lease holds until this transaction ends: a takeover waits for that.

It is for work in this database that only the owner of the lease may commit. It does not make that
work happen once: after a crash between this commit and idem_finish the next owner does it again.
Only idem_finish in the same transaction does. Until this transaction ends an idem_renew or
idem_finish in another one waits, and fails with 55P03 after 2 seconds.

Parameters:
p_user_id: as given to idem_claim.
p_key: as given to idem_claim.
p_token: the token that idem_claim gave.

Returns:
Nothing.

Errors:
22023: an argument is invalid.
25006: the transaction is read-only.
40001: under REPEATABLE READ or SERIALIZABLE: run a new transaction.
55P03: the record or the table was locked for 2 seconds: call it again.
ID003: the lease is lost: it has ended, the token does not hold the record, or the operation is
  finished.

Example:
-- as the application
select token
from pgidem.idem_claim(
  p_user_id => 'user-1',
  p_key => 'order-6',
  p_request_sha256 => sha256('POST /payouts {"amount":6}')
)
\gset
begin;
select pgidem.idem_assert_lease(
  p_user_id => 'user-1',
  p_key => 'order-6',
  p_token => :token
);
-- work that only the owner may commit
commit;$$;

revoke all on function pgidem.idem_assert_lease(text, text, bigint) from public;
