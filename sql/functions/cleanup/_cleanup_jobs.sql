/*
Dynamic, since pg_cron need not be there. Asks for the extension first: a schema cron alone may be anybody's, and a view in it
would run with the rights of the owner. The row security of pg_cron shows a role its own jobs, a superuser all.
*/
create or replace function pgidem._cleanup_jobs(
  out p_id bigint,
  out p_schedule text,
  out p_command text,
  out p_username text,
  out p_active boolean
)
returns setof record
language plpgsql
volatile
parallel unsafe
security invoker
as $$
begin
  if exists (select from pg_extension e where e.extname = 'pg_cron')
     and has_schema_privilege(to_regnamespace('cron'), 'usage') then
    return query execute
      'select jobid, schedule, command, username, active from cron.job where jobname = $1 and database = current_database()'
      using 'pgidem.idempotency_cleanup';
  end if;
end
$$;

comment on function pgidem._cleanup_jobs() is
  'The jobs of pg_cron that clean up this database, as far as the current role may see them; none when pg_cron is not in this database.';

revoke all on function pgidem._cleanup_jobs() from public;
