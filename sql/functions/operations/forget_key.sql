create or replace function pgidem.forget_key(
  p_user_id text,
  p_key text,
  p_force boolean default false
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
  v_user_id constant text collate "C" := p_user_id;
  v_key constant text collate "C" := p_key;
  v_force constant boolean := coalesce(p_force, false);
  v_key_forgotten boolean;
  v_record_forgotten boolean;
begin
  perform pgidem._check_key_argument(p_user_id, p_key);
  -- Each call in a statement of its own: a planner that knows one result leaves out the other side of an OR.
  v_key_forgotten := pgidem._forget(pgidem._uuid(v_user_id), pgidem._uuid(v_key), v_force);
  v_record_forgotten := pgidem._forget_record(v_user_id, v_key, v_force);
  return v_key_forgotten or v_record_forgotten;
end
$$;

comment on function pgidem.forget_key(text, text, boolean) is
$$Deletes what is recorded for one key, so that the next request with it runs the operation again.

For a stored answer that must not be replayed any longer, and for a key that is stuck because a
caller committed without idem_complete, or because the worker that leased it is dead. It looks in
both tables and forgets either all or nothing.

Parameters:
p_user_id: the principal; in idempotency_keys a UUID in its form of 36 characters (RFC 9562).
p_key: the key, likewise.
p_force: true to forget a committed claim and a running lease too. Find out first that nobody works
  on it: the effect can happen twice.

Returns:
True when there was something to forget, else false.

Errors:
22023: p_user_id or p_key is null.
55P03: a lock was held for 2 seconds.
ID002: the key is running: in an open transaction, this one included, or, without p_force, by a
  committed claim or a lease.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');
select outcome
from pgidem.idem_save_final(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000007',
  p_action => 'delete_payment',
  p_request_sha256 => sha256('DELETE /payments/7'),
  p_status => 404,
  p_body => '{"code": "not_found"}'
);
--> stored

-- as an operator
select pgidem.forget_key(
  p_user_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000007'
);
--> t$$;

revoke all on function pgidem.forget_key(text, text, boolean) from public;
