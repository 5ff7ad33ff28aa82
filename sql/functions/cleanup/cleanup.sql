/*
A COMMIT allows no SET clause, no rights of the owner and no exception block. So this body calls nothing unqualified, and
all work on the tables stands in _cleanup_step.
*/
create or replace procedure pgidem.cleanup(
  p_batch_size integer default null,
  p_max_batches integer default null,
  p_pause interval default null
)
language plpgsql
security invoker
as $$
declare
  v_pause constant numeric := extract(epoch from p_pause);
  v_run bigint;
  v_more boolean;
  v_batch integer := 0;
begin
  if p_batch_size operator(pg_catalog.<) 1 or p_max_batches operator(pg_catalog.<) 1
     or v_pause operator(pg_catalog.<=) 0 or v_pause operator(pg_catalog.>) 3600 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = pg_catalog.format('p_batch_size is %s, p_max_batches is %s, p_pause is %s.',
        coalesce(p_batch_size::pg_catalog.text, 'null'),
        coalesce(p_max_batches::pg_catalog.text, 'null'),
        coalesce(p_pause::pg_catalog.text, 'null')),
      hint = 'Give batches of at least 1 row, at least 1 batch and a pause of more than zero and at most 1 hour. Null: the size of the settings, no limit, no pause.';
  end if;

  loop
    select s.p_run, s.p_more into v_run, v_more from pgidem._cleanup_step(p_batch_size, v_run) s;
    commit;
    v_batch := v_batch operator(pg_catalog.+) 1;
    exit when not v_more or v_batch operator(pg_catalog.=) p_max_batches;
    if v_pause is not null then
      perform pg_catalog.pg_sleep(v_pause);
    end if;
  end loop;
end
$$;

comment on procedure pgidem.cleanup(integer, integer, interval) is
$$Deletes expired keys in batches, each with a COMMIT, until none is left.

Expired keys count as absent, cleaned or not; this only gives their space back. A run that is
cancelled keeps the batches it finished; runs that overlap do no harm. Call it outside a transaction
block, also of a driver that begins one by itself; inside one use cleanup_batch.

Parameters:
p_batch_size: how many rows one transaction deletes, at least 1; null means
  settings.cleanup_batch_size.
p_max_batches: after how many batches to stop, at least 1; null means no limit.
p_pause: how long to wait between batches: an interval of more than zero and at most 1 hour; null
  means not at all. Keep it short: VACUUM keeps what dies during a pause until its end.

Returns:
Nothing.

Errors:
22023: an argument is invalid, or settings has no row.
2D000: inside a transaction block.
40001: another run deleted the same rows, where default_transaction_isolation is not read committed.
55P03: a lock on the table was held for 100 milliseconds: call it again.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');
-- a key that lives for a microsecond, so that there is something to delete
select outcome
from pgidem.idem_save_final(
  p_principal_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000005',
  p_action => 'delete_payment',
  p_request_sha256 => sha256('DELETE /payments/7'),
  p_status => 404,
  p_body => '{"code": "not_found"}',
  p_ttl => interval '1 microsecond'
);
--> stored

-- as an operator
select count(*)
from pgidem.lookup_key(
  p_user_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000005'
);
--> 1
call pgidem.cleanup();
select count(*)
from pgidem.lookup_key(
  p_user_id => '0192f0c1-2345-7abc-8def-0123456789ab',
  p_key => '0192f0c1-6789-7abc-8def-000000000005'
);
--> 0$$;

revoke all on procedure pgidem.cleanup(integer, integer, interval) from public;
