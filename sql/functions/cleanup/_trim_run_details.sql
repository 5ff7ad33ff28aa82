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
    -- A run that a crash ended has no end_time, and one that could not connect no time at all: it is as old as those with
    -- the next numbers.
    execute
      'delete from cron.job_run_details d'
      ' where d.command = $1 and d.database = current_database() and d.username = current_user'
      ' and (coalesce(d.end_time, d.start_time) < $2'
      '   or coalesce(d.end_time, d.start_time) is null and d.runid < ('
      '     select max(o.runid) from cron.job_run_details o'
      '     where o.command = $1 and o.database = current_database() and o.username = current_user'
      '     and coalesce(o.end_time, o.start_time) < $2))'
      using 'call pgidem.cleanup()', v_before;
  end if;
exception
  when lock_not_available then
    null; -- the next time
end
$$;

comment on function pgidem._trim_run_details() is 'Deletes what pg_cron wrote down of the cleanup more than 7 days ago, where the current role may.';

revoke all on function pgidem._trim_run_details() from public;
