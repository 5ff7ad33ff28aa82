create or replace function pgidem._complete(
  p_principal_id uuid,
  p_key uuid,
  p_status integer,
  p_body jsonb,
  p_one_time_secret boolean
)
returns pgidem.begin_result
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_resource_id constant uuid := pgidem._uuid(p_body ->> 'id');
  v_now timestamptz;
  r pgidem.begin_result;
begin
  update pgidem.idempotency_keys k
  set state = 'completed',
      response_status = p_status,
      response_body = case when p_one_time_secret then '{"one_time_secret": true}' else p_body end,
      resource_id = v_resource_id
  where k.principal_id = p_principal_id
    and k.key = p_key
    and k.state = 'in_progress'
    -- The first says what _mine says of a claim outside subtransactions, and costs less.
    and (k.xmin = pg_current_xact_id_if_assigned()::xid or pgidem._mine(k.xmin))
  returning 'stored', k.response_status::integer, k.response_body::text, k.resource_id, p_one_time_secret, null::integer, k.created_at, k.expires_at
  into r;

  if not found then
    raise exception using
      errcode = 'ID001',
      message = 'no claim of this transaction to complete',
      detail = 'The key is not in progress in this transaction: idem_begin did not answer claimed here, was undone by ROLLBACK TO or an exception block, the claim was completed before, or the operation deleted it, as a cascade from its principal does.',
      hint = 'Roll back. Call idem_begin first and outside any savepoint, idem_complete once and last, both in one transaction and for the same principal and key.';
  end if;
  -- Born expired, the row would answer nobody and the retry would run again: then the TTL counts from now.
  v_now := pgidem._now();
  if r.expires_at <= v_now then
    update pgidem.idempotency_keys k
    set expires_at = v_now + pgidem._seconds(k.expires_at - k.created_at)
    where k.principal_id = p_principal_id
      and k.key = p_key
    returning k.expires_at
    into r.expires_at;
  end if;
  return r;
end
$$;

comment on function pgidem._complete(uuid, uuid, integer, jsonb, boolean) is
  'Stores the response in the row that this transaction claimed and returns it as stored. Raises ID001 when there is no such row.';

revoke all on function pgidem._complete(uuid, uuid, integer, jsonb, boolean) from public;
