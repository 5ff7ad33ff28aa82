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
  v_limit constant integer := pgidem._batch_size(p_limit);
  v_left integer := v_limit;
  v_mark timestamptz := timestamptz '-infinity';
  v_deleted integer;
  v_more boolean;
begin
  loop
    select d.p_mark, d.p_deleted, d.p_more into v_mark, v_deleted, v_more from pgidem._delete_expired(v_left, v_mark) d;
    v_left := v_left - v_deleted;
    exit when v_left <= 0 or not v_more;
  end loop;
  return v_limit - v_left;
end
$$;

comment on function pgidem.cleanup_batch(integer) is
$$Deletes keys that have expired, oldest first, in the transaction of the caller.

Expired keys count as absent, cleaned or not; this only gives their space back. Call it again while
it returns p_limit, or use the procedure cleanup, which does.

Parameters:
p_limit: the largest number of rows to delete, at least 1; null means settings.cleanup_batch_size.

Returns:
How many rows of both tables were deleted: p_limit, or all that have expired but those that another
transaction holds.

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
