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
  v_now constant timestamptz := pgidem._now();
  v_resource_id constant uuid := pgidem._uuid(p_body ->> 'id');
  r pgidem.begin_result;
begin
  -- Born expired, the row would answer nobody and the retry would run again: then the TTL counts from now.
  update pgidem.idempotency_keys k
  set state = 'completed',
      response_status = p_status,
      response_body = case when p_one_time_secret then '{"one_time_secret": true}' else p_body end,
      resource_id = v_resource_id,
      expires_at = case
        when k.expires_at > v_now then k.expires_at
        else v_now + make_interval(secs => extract(epoch from k.expires_at - k.created_at)::double precision)
      end
  where k.principal_id = p_principal_id
    and k.key = p_key
    and k.state = 'in_progress'
    and pgidem._mine(k.xmin)
  returning 'stored', k.response_status::integer, k.response_body::text, k.resource_id, p_one_time_secret, null::integer, k.created_at, k.expires_at
  into r;

  if not found then
    raise exception using
      errcode = 'ID001',
      message = 'no claim of this transaction to complete',
      detail = 'The key is not in progress in this transaction: idem_begin did not answer claimed here, was undone by ROLLBACK TO or an exception block, the claim was completed before, or the operation deleted it, as a cascade from its principal does.',
      hint = 'Roll back. Call idem_begin first and outside any savepoint, idem_complete once and last, both in one transaction and for the same principal and key.';
  end if;
  return r;
end
$$;

comment on function pgidem._complete(uuid, uuid, integer, jsonb, boolean) is
  'Stores the response in the row that this transaction claimed and returns it as stored. Raises ID001 when there is no such row.';

revoke all on function pgidem._complete(uuid, uuid, integer, jsonb, boolean) from public;
