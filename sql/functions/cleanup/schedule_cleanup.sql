/*
The job belongs to the owner of pgidem, whoever calls: one job, and a role that is dropped leaves none behind.
*/
create or replace function pgidem.schedule_cleanup()
returns bigint
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
declare
  c_name constant text := 'pgidem.idempotency_cleanup';
  c_command constant text := 'call pgidem.cleanup()';
  v_interval interval;
  v_schedule text;
  v_home text;
  v_elsewhere text;
  v_job record;
  v_id bigint;
begin
  select s.cleanup_interval into v_interval from pgidem.settings s where s.singleton;
  v_interval := pgidem._duration('settings.cleanup_interval', v_interval);
  v_schedule := pgidem._cron_schedule(v_interval);
  if v_schedule is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'cron cannot express the interval',
      detail = format('settings.cleanup_interval is %s.', v_interval),
      hint = 'Set it to 1, 2, 3, 4, 5, 6, 10, 12, 15, 20 or 30 minutes, 1, 2, 3, 4, 6, 8 or 12 hours, or 1 day.';
  end if;

  if not exists (select from pg_extension e where e.extname = 'pg_cron') then
    -- The name of a job is unique for its role, whatever the database, and pg_cron 1.4 cuts it at 63 bytes.
    v_elsewhere := 'un there as a superuser: ' || format('select cron.schedule_in_database(%L, %L, %L, %L, %L)',
      c_name || ' of ' || case
        when octet_length(c_name || ' of ' || current_database()) <= 63 then current_database()
        else (select d.oid::text from pg_database d where d.datname = current_database())
      end,
      v_schedule, c_command, current_database(), current_user);
    begin
      v_home := current_setting('cron.database_name', true);
    exception
      when insufficient_privilege then
        raise exception using
          errcode = 'ID004',
          message = 'pg_cron is not in this database',
          detail = 'The server has loaded it; for which database, only a superuser may see.',
          hint = 'As a superuser run: create extension pg_cron. Where that fails since pg_cron lives in another database, r' || v_elsewhere;
    end;
    if v_home is null then
      raise exception using
        errcode = 'ID004',
        message = 'pg_cron is not in this database',
        detail = 'The server has not loaded it.',
        hint = 'Add pg_cron to shared_preload_libraries, set cron.database_name, restart, and run: create extension pg_cron. Or run `pgidem cleanup --every 1m` beside the application.';
    elsif v_home = current_database() then
      raise exception using
        errcode = 'ID004',
        message = 'pg_cron is not in this database',
        detail = 'The server has loaded it for this database.',
        hint = 'As a superuser run: create extension pg_cron';
    end if;
    raise exception using
      errcode = 'ID004',
      message = 'pg_cron is not in this database',
      detail = format('It lives in database %s.', v_home),
      hint = 'R' || v_elsewhere;
  end if;
  if not has_schema_privilege(to_regnamespace('cron'), 'usage') then
    raise exception using
      errcode = 'insufficient_privilege',
      message = 'the owner of pgidem may not use pg_cron',
      detail = format('The job belongs to role %s, which has no right to use the schema cron.', current_user),
      hint = 'As a superuser run: grant usage on schema cron to ' || quote_ident(current_user);
  end if;
  if not exists (select from pg_roles r where r.rolname = current_user and r.rolcanlogin) then
    raise exception using
      errcode = 'insufficient_privilege',
      message = 'the owner of pgidem may not log in',
      detail = format('pg_cron runs a job as the role that it belongs to, here %s.', current_user),
      hint = 'As a superuser run: alter role ' || quote_ident(current_user) || ' login';
  end if;

  for v_job in
    select * from pgidem._cleanup_jobs()
  loop
    if v_job.p_username <> current_user then
      raise exception using
        errcode = 'ID005',
        message = 'another role has scheduled the cleanup',
        detail = format('Job %s of pg_cron belongs to role %s.', v_job.p_id, v_job.p_username),
        hint = 'As that role or as a superuser run: select cron.unschedule(' || v_job.p_id || ')';
    end if;
    if v_job.p_active then
      if v_job.p_schedule = v_schedule and v_job.p_command = c_command then
        return v_job.p_id;
      end if;
    else
      -- Scheduled again it would stay inactive, and alter_job is for superusers.
      execute 'select cron.unschedule($1)' using v_job.p_id;
    end if;
  end loop;
  -- It would keep its database, and this one stay without.
  execute 'select jobid from cron.job where jobname = $1 and username = current_user and database <> current_database()'
    into v_id using c_name;
  if v_id is not null then
    raise exception using
      errcode = 'ID005',
      message = 'a job of another database has this name',
      detail = format('Job %s of pg_cron is named %s and runs in another database.', v_id, c_name),
      hint = 'Run: select cron.unschedule(' || v_id || '). In that database schedule_cleanup says how to schedule it there.';
  end if;
  execute 'select cron.schedule($1, $2, $3)' into v_id using c_name, v_schedule, c_command;
  return v_id;
end
$$;

comment on function pgidem.schedule_cleanup() is
$$Registers the cleanup as a job of pg_cron, at settings.cleanup_interval.

There is one job, pgidem.idempotency_cleanup, which belongs to the owner of the schema and runs:
call pgidem.cleanup(). Call it again after a change of the interval; without one it changes nothing.
What pg_cron wrote down of its runs more than 7 days ago is deleted with the cleanup.

Returns:
The number of the job in cron.job.

Errors:
22023: cron cannot express settings.cleanup_interval, or settings has no row.
42501: the owner of the schema may not use the schema cron, or may not log in.
ID004: pg_cron is not in this database; the hint says what to run where.
ID005: another role has scheduled the cleanup, as far as the owner of the schema may see, or a job
  of another database has the name.

Example:
-- as an operator
select pgidem.schedule_cleanup();
--> 1$$;

revoke all on function pgidem.schedule_cleanup() from public;
