/*
Rows that somebody holds are passed over, so the cleanup waits for no claim. Expiry is tested again in the delete: a row
that was replaced since the subquery saw it is alive.
*/
create or replace function pgidem.cleanup_batch(
  p_limit integer default null
)
returns integer
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
set enable_seqscan = off
as $$
declare
  v_now constant timestamptz := pgidem._now();
  v_limit integer := p_limit;
  v_deleted integer;
begin
  if v_limit is null then
    select s.cleanup_batch_size into v_limit from pgidem.settings s where s.singleton;
  end if;
  if v_limit is null or v_limit < 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = format('p_limit is %s.', coalesce(v_limit::text, 'not set')),
      hint = 'Give a number of rows, at least 1. If the setting is not set, run: insert into pgidem.settings default values.';
  end if;

  delete from pgidem.idempotency_keys k
  using (
    select e.principal_id, e.key
    from pgidem.idempotency_keys e
    where e.expires_at <= v_now
    order by e.expires_at
    limit v_limit
    for update skip locked
  ) expired
  where k.principal_id = expired.principal_id
    and k.key = expired.key
    and k.expires_at <= v_now;
  get diagnostics v_deleted = row_count;
  return v_deleted;
end
$$;

comment on function pgidem.cleanup_batch(integer) is
$$Deletes keys that have expired, oldest first, in the transaction of the caller. Expired keys count as absent, cleaned or not; this only gives their space back. Call it again while it returns p_limit.

Parameters: p_limit: the largest number of rows to delete; null means settings.cleanup_batch_size.
Returns how many rows were deleted. Rows that another transaction holds are left for the next call.
Errors: 22023 when p_limit is less than 1. 55P03 after 100 ms behind a lock on the table.
Example: select pgidem.cleanup_batch(1000);$$;

revoke all on function pgidem.cleanup_batch(integer) from public;
