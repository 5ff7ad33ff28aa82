/*
Removes pgidem and all it stored, in one transaction: psql -f sql/uninstall.sql. Run it as the owner of schema pgidem.
Objects of yours that refer to pgidem (a view, a foreign key to pgidem.principals) are dropped by the cascade.
*/
\set ON_ERROR_STOP on
begin;

-- The job first: without the schema each run of it would fail. Dynamic, since pg_cron need not be there.
do $$
declare
  c_job constant text := 'pgidem.idempotency_cleanup';
  v_cron_database text;
  v_id bigint;
begin
  if exists (select from pg_extension where extname = 'pg_cron') then
    if not has_schema_privilege('cron', 'usage') then
      raise notice 'no right to look at the jobs of pg_cron'
        using hint = format('If another role scheduled %I, run as that role: select cron.unschedule(%L).', c_job, c_job);
      return;
    end if;
    for v_id in
      execute 'select jobid from cron.job where jobname = $1 and database = current_database()' using c_job
    loop
      execute 'select cron.unschedule($1)' using v_id;
    end loop;
    return;
  end if;

  begin
    v_cron_database := current_setting('cron.database_name', true);
  exception when insufficient_privilege then
    v_cron_database := '(which, only a superuser may see)';
  end;
  if v_cron_database is not null then
    raise notice 'pg_cron lives in database %, where this script cannot look', v_cron_database
      using hint = format('If the cleanup was scheduled, run there: select cron.unschedule(jobid) from cron.job where command like %L and database = %L;',
        '%pgidem.cleanup(%', current_database());
  end if;
end
$$;

set local client_min_messages = warning;
drop schema if exists pgidem cascade;

commit;
