/*
Without the gates, as a deleted principal takes its keys along: an answer that somebody has just read was given in time. A
key that runs is refused, since its effect may be under way; one statement tests and deletes, so that no claim slips in
between. Both tables or none: a refusal undoes what was deleted.
*/
create or replace function pgidem.forget_principal(
  p_user_id text
)
returns bigint
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
  v_principal_id constant uuid := pgidem._uuid(v_user_id);
  v_now timestamptz;
  v_deleted bigint;
  v_forgotten bigint;
  v_running text;
begin
  if p_user_id is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = 'p_user_id is null.',
      hint = 'Pass the principal as text, a UUID in its form of 36 characters.';
  end if;

  v_now := pgidem._now();
  delete from pgidem.idempotency_keys k
  where k.principal_id = v_principal_id
    and (k.state = 'completed' or k.expires_at <= v_now)
    and not pgidem._mine(k.xmin);
  get diagnostics v_forgotten = row_count;
  delete from pgidem.idempotency_record k
  where k.user_id = v_user_id
    and (k.state = 'completed' or k.live_until <= v_now)
    and not pgidem._mine(k.xmin);
  get diagnostics v_deleted = row_count;
  v_forgotten := v_forgotten + v_deleted;

  v_running := coalesce(
    (select k.key::text from pgidem.idempotency_keys k
      where k.principal_id = v_principal_id and (k.state = 'in_progress' or pgidem._mine(k.xmin)) limit 1),
    (select k.idem_key from pgidem.idempotency_record k
      where k.user_id = v_user_id and (k.state = 'in_progress' or pgidem._mine(k.xmin)) limit 1)
  );
  if v_running is not null then
    raise exception using
      errcode = 'ID002',
      message = 'a key of the principal is running',
      detail = format('Key %s has a claim of this transaction or one without an answer.', v_running),
      hint = 'Wait for its end, or find out that nobody works on it and free it with forget_key, p_force => true. Then call this again. The claim of this transaction goes with its ROLLBACK.';
  end if;
  return v_forgotten;
end
$$;

comment on function pgidem.forget_principal(text) is
$$Deletes what is recorded for all keys of one principal, so that requests with them run again.

For a principal who leaves, and for answers that must not be kept. It looks in both tables and
forgets either all or nothing. A key that runs in an open transaction cannot be seen and stays: lock
the principal out first, and call it again when those have ended. The principal itself stays too.

Parameters:
p_user_id: the principal; in idempotency_keys a UUID in its form of 36 characters (RFC 9562).

Returns:
How many keys were forgotten, 0 when there was none.

Errors:
22023: p_user_id is null.
55P03: a lock was held for 2 seconds.
ID002: one of the keys is running, by a committed claim or a lease; nothing was forgotten.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-000000000008');
select outcome
from pgidem.idem_save_final(
  p_principal_id => '0192f0c1-2345-7abc-8def-000000000008',
  p_key => '0192f0c1-6789-7abc-8def-000000000008',
  p_action => 'delete_payment',
  p_request_sha256 => sha256('DELETE /payments/8'),
  p_status => 404,
  p_body => '{"code": "not_found"}'
);
--> stored

-- as an operator
select pgidem.forget_principal(p_user_id => '0192f0c1-2345-7abc-8def-000000000008');
--> 1$$;

revoke all on function pgidem.forget_principal(text) from public;
