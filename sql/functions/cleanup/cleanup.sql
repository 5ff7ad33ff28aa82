/*
A COMMIT allows no SET clause, no rights of the owner and no exception block. So this body calls nothing unqualified, and
all work on the tables stands in cleanup_batch.
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
  v_size integer := p_batch_size;
  v_deleted integer;
  v_batch integer := 0;
begin
  if p_max_batches operator(pg_catalog.<) 1
     or p_pause operator(pg_catalog.<=) interval '0' or p_pause operator(pg_catalog.>) interval '1 hour' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = pg_catalog.format('p_max_batches is %s, p_pause is %s.',
        coalesce(p_max_batches::text, 'null'), coalesce(p_pause::text, 'null')),
      hint = 'Give at least 1 batch and a pause of more than zero and at most 1 hour, or null for no limit and no pause.';
  end if;
  if v_size is null then
    select s.cleanup_batch_size into v_size from pgidem.show_settings() s;
  end if;

  loop
    v_deleted := pgidem.cleanup_batch(v_size);
    commit;
    v_batch := v_batch operator(pg_catalog.+) 1;
    exit when v_deleted operator(pg_catalog.<) v_size or v_batch operator(pg_catalog.=) p_max_batches;
    if p_pause is not null then
      perform pg_catalog.pg_sleep(extract(epoch from p_pause));
    end if;
  end loop;
end
$$;

comment on procedure pgidem.cleanup(integer, integer, interval) is
$$Deletes keys that have expired, in batches with a COMMIT after each, until a batch is smaller than the batch size. Expired keys count as absent, cleaned or not; this only gives their space back. A run that is cancelled keeps the batches it finished; runs that overlap do no harm. Call it outside a transaction block, also of a driver that begins one by itself; inside one use cleanup_batch.

Parameters:
p_batch_size: how many rows one transaction deletes; null means settings.cleanup_batch_size.
p_max_batches: after how many batches to stop; null means no limit.
p_pause: how long to wait between batches, at most 1 hour; null means not at all.

Errors: 22023 for an invalid argument. 2D000 inside a transaction block. 55P03 after 100 ms behind a lock on the table: call it again.
Example: call pgidem.cleanup();$$;

revoke all on procedure pgidem.cleanup(integer, integer, interval) from public;
