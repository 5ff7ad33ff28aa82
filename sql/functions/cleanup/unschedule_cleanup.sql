create or replace function pgidem.unschedule_cleanup()
returns boolean
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
  v_job record;
  v_removed boolean := false;
begin
  -- One call after the other: the second one finds no job, where pg_cron would stumble over a row that is gone.
  perform from pgidem.settings s where s.singleton for update;
  for v_job in
    select j.p_id from pgidem._cleanup_jobs() j where j.p_username = current_user
  loop
    execute 'select cron.unschedule($1)' using v_job.p_id;
    v_removed := true;
  end loop;
  return v_removed;
end
$$;

comment on function pgidem.unschedule_cleanup() is
$$Removes the job that schedule_cleanup registered.

A run that is under way goes on.

Returns:
True when there was a job, else false, also where pg_cron is not in this database.

Errors:
None of its own.

Example:
-- as an operator
select pgidem.schedule_cleanup();
--> 1
select pgidem.unschedule_cleanup();
--> t$$;

revoke all on function pgidem.unschedule_cleanup() from public;
