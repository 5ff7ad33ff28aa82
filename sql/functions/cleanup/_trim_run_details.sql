/*
pg_cron keeps a row for each run of each job, for ever. Those of other jobs are nobody's business here. By the command, not by
the number of the job, which is another one after the next schedule_cleanup. As in _cleanup_jobs, the extension first.
*/
create or replace function pgidem._trim_run_details()
returns void
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_before constant timestamptz := pgidem._now() - make_interval(days => 7);
begin
  if exists (select from pg_extension e where e.extname = 'pg_cron')
     and has_schema_privilege(to_regnamespace('cron'), 'usage')
     and has_table_privilege(to_regclass('cron.job_run_details'), 'select')
     and has_table_privilege(to_regclass('cron.job_run_details'), 'delete') then
    -- A run that a crash ended has no end_time.
    execute
      'delete from cron.job_run_details'
      ' where command = $1 and database = current_database() and username = current_user'
      ' and coalesce(end_time, start_time) < $2'
      using 'call pgidem.cleanup()', v_before;
  end if;
end
$$;

comment on function pgidem._trim_run_details() is 'Deletes what pg_cron wrote down of the cleanup more than 7 days ago, where the current role may.';

revoke all on function pgidem._trim_run_details() from public;
