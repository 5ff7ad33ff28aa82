create or replace function pgidem.lookup_key(
  p_user_id text,
  p_key text,
  p_with_body boolean default false
)
returns setof pgidem.lookup_result
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
  v_idem_key constant text collate "C" := p_key;
  v_principal_id constant uuid := pgidem._uuid(v_user_id);
  v_key constant uuid := pgidem._uuid(v_idem_key);
  v_now constant timestamptz := pgidem._now();
  v_runner integer;
  r pgidem.lookup_result;
begin
  perform pgidem._check_key_argument(p_user_id, p_key);

  -- The runner first: if it ends between the two looks, its row is there.
  v_runner := pgidem._runner(pgidem._gate(v_principal_id, v_key));
  select 'idempotency_keys', k.state, k.expires_at > v_now, k.action, k.response_status::integer, k.resource_id,
    coalesce(k.response_body = '{"one_time_secret": true}' and k.response_status < 300, false),
    k.created_at, v_now - k.created_at, k.expires_at, v_runner,
    case when p_with_body then k.response_body::text end
  into r
  from pgidem.idempotency_keys k
  where k.principal_id = v_principal_id
    and k.key = v_key;
  -- The claim of an open transaction cannot be seen, at most the expired row that it replaces.
  if v_runner is not null and r.live is not true then
    r := null;
    r.table_name := 'idempotency_keys';
    r.state := 'in_progress';
    r.live := true;
    r.running_pid := v_runner;
  end if;
  if r.table_name is not null then
    return next r;
  end if;

  r := null;
  v_runner := pgidem._runner(pgidem._record_gate(v_user_id, v_idem_key));
  select 'idempotency_record', k.state, k.live_until > v_now, null::text, k.response_status::integer, null::uuid, k.one_time_secret,
    k.created_at, v_now - k.created_at, k.live_until, v_runner,
    case when p_with_body then encode(k.response_body, 'escape') end
  into r
  from pgidem.idempotency_record k
  where k.user_id = v_user_id
    and k.idem_key = v_idem_key;
  if v_runner is not null and r.live is not true then
    r := null;
    r.table_name := 'idempotency_record';
    r.state := 'in_progress';
    r.live := true;
    r.running_pid := v_runner;
  end if;
  if r.table_name is not null then
    return next r;
  end if;
end
$$;

comment on function pgidem.lookup_key(text, text, boolean) is
$$Shows an operator what is recorded for one key. It waits for nobody and changes nothing.

Parameters:
p_user_id: the principal; in idempotency_keys a UUID in its form of 36 characters (RFC 9562).
p_key: the key, likewise.
p_with_body: true to show the stored body too, which may hold personal data; of idempotency_record
  with bytes beyond ASCII as a backslash and three octal digits.

Returns:
One row for each table that knows the key, none when nothing is known of it. A row with live = false
has expired and counts as absent. While an open transaction runs the key, running_pid names its
session; the row of that transaction cannot be seen yet, so created_at and the like are null.

A row of idempotency_keys in state in_progress without running_pid belongs to a caller that
committed without idem_complete: forget_key frees such a key. In idempotency_record such a row is a
running lease, which frees itself at expires_at.

Errors:
22023: p_user_id or p_key is null.
55P03: a lock on the table was held for 2 seconds.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');
select outcome
from pgidem.idem_save_final(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000006',
  p_action => 'delete_payment',
  p_request_sha256 => sha256('DELETE /payments/7'),
  p_status => 404,
  p_body => '{"code": "not_found"}'
);
--> stored

-- as an operator
select state, live, action, response_status
from pgidem.lookup_key(
  p_user_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000006'
);
--> completed | t | delete_payment | 404$$;

revoke all on function pgidem.lookup_key(text, text, boolean) from public;
