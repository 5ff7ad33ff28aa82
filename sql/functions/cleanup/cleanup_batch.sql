/*
Rows that somebody holds are passed over, so the cleanup waits for no claim, and a row that was given a new life since the
subquery saw it fails the test of the lock. The delete names rows by ctid alone: a join or a second look at expires_at
would offer a plan that was cheap when the table was small and then, cached, reads all expired rows at each call. So would
a bitmap scan.
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
set enable_bitmapscan = off
as $$
declare
  v_now constant timestamptz := pgidem._now();
  v_limit integer := p_limit;
  v_deleted integer;
  v_records integer := 0;
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
  where k.ctid = any (array(
    select e.ctid
    from pgidem.idempotency_keys e
    where e.expires_at <= v_now
    order by e.expires_at
    limit v_limit
    for update skip locked
  ));
  get diagnostics v_deleted = row_count;

  if v_deleted < v_limit then
    delete from pgidem.idempotency_record k
    where k.ctid = any (array(
      select e.ctid
      from pgidem.idempotency_record e
      where e.expires_at <= v_now
        and e.live_until <= v_now
      order by e.expires_at
      limit v_limit - v_deleted
      for update skip locked
    ));
    get diagnostics v_records = row_count;
  end if;
  return v_deleted + v_records;
end
$$;

comment on function pgidem.cleanup_batch(integer) is
$$Deletes keys that have expired, the oldest of each table first, in the transaction of the caller.

Expired keys count as absent, cleaned or not; this only gives their space back. Call it again while
it returns p_limit, or use the procedure cleanup, which does.

Parameters:
p_limit: the largest number of rows to delete, at least 1; null means settings.cleanup_batch_size.

Returns:
How many rows of both tables were deleted. Rows that another transaction holds are left for the next
call.

Errors:
22023: p_limit is less than 1, or settings has no row.
55P03: a lock on the table was held for 100 milliseconds: call it again.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');
-- a key that lives for a microsecond, so that there is something to delete
select outcome
from pgidem.idem_save_final(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000004',
  p_action => 'delete_payment',
  p_request_sha256 => sha256('DELETE /payments/7'),
  p_status => 404,
  p_body => '{"code": "not_found"}',
  p_ttl => interval '1 microsecond'
);
--> stored

-- as an operator
select pgidem.cleanup_batch(p_limit => 1000);
--> 1$$;

revoke all on function pgidem.cleanup_batch(integer) from public;
