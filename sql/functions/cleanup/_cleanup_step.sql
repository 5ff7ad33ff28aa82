/*
The one helper that a role is granted: by grant_operator, for the procedure cleanup, which runs with the rights of its caller.
*/
create or replace function pgidem._cleanup_step(
  p_limit integer,
  inout p_run bigint,
  out p_deleted integer,
  out p_more boolean
)
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
  v_mark timestamptz;
  v_ended_at timestamptz;
begin
  -- What a crash undoes has expired all the same, so its COMMIT need not wait for the disk. A clause of the function would
  -- end before that.
  set local synchronous_commit = off;

  -- The row of the run can be gone: a crash of the server takes the first batches back. Then the run begins anew.
  select r.id, r.mark into p_run, v_mark from pgidem.cleanup_run r where r.id = p_run;
  if p_run is null then
    insert into pgidem.cleanup_run (started_at)
    values (pgidem._now())
    returning id, mark into p_run, v_mark;
    -- Another run may be deleting the same ones.
    delete from pgidem.cleanup_run r
    where r.id = any (array(
      select e.id from pgidem.cleanup_run e where e.id <= p_run - 10000 for update skip locked
    ));
    -- The table of pg_cron has no index for this, so not every time.
    if p_run % 100 = 0 then
      perform pgidem._trim_run_details();
    end if;
  end if;

  select d.p_mark, d.p_deleted, d.p_more
  into v_mark, p_deleted, p_more
  from pgidem._delete_expired(pgidem._batch_size(p_limit), v_mark) d;

  if not p_more then
    v_ended_at := pgidem._now();
  end if;
  update pgidem.cleanup_run r
  set batches = r.batches + 1,
      deleted = r.deleted + p_deleted,
      mark = v_mark,
      ended_at = v_ended_at
  where r.id = p_run;
end
$$;

comment on function pgidem._cleanup_step(integer, bigint) is
  'One batch of a run of the cleanup: p_run is null for the first one, then what that returned. p_limit as in cleanup_batch. p_more is false when the run is done.';

revoke all on function pgidem._cleanup_step(integer, bigint) from public;
