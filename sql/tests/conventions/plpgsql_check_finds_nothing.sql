-- Before the first function in PL/pgSQL of this session, as newer versions of it demand.
load 'plpgsql_check';
begin;
\ir ../_alone.psql
select plan(2);

-- It checks constant dynamic SQL too, so pg_cron has to be there, or what is used of it.
create schema if not exists cron;
create table if not exists cron.job (jobid bigint, schedule text, command text, database text, username text, active boolean, jobname name);
create table if not exists cron.job_run_details (runid bigint, database text, username text, command text, start_time timestamptz, end_time timestamptz);
do $$
begin
  if not exists (select from pg_extension where extname = 'pg_cron') then
    create function cron.schedule(job_name text, schedule text, command text) returns bigint language sql return 1;
    create function cron.unschedule(job_id bigint) returns boolean language sql return true;
  end if;
end
$$;

-- Two things that it cannot know: what dynamic SQL writes (it would call such a function stable), and that _mine gives one
-- answer for a visible row during a statement, although it asks a volatile function.
prepare offenders as
select p.proname::text, c.lineno, c.level, c.message, c.hint
from pg_proc p
join pg_language l on l.oid = p.prolang
cross join lateral plpgsql_check_function_tb(
  p.oid,
  fatal_errors => false,
  other_warnings => true,
  extra_warnings => true,
  performance_warnings => true,
  security_warnings => true
) c
where p.pronamespace = 'pgidem'::regnamespace
  and l.lanname = 'plpgsql'
  and p.prorettype <> 'trigger'::regtype
  and not (p.prosrc ~ '\mexecute\M' and c.message like 'routine is marked as VOLATILE, should be %')
  and not (p.proname = '_mine' and c.message like 'routine is marked as STABLE, but expression is VOLATILE');

select is_empty('offenders', 'no error and no warning in any function');

create function pgidem.planted() returns void language plpgsql as $$
declare
  v_unused integer;
begin
end
$$;
select isnt_empty('offenders', 'an unused variable is found');

select * from finish();
rollback;
