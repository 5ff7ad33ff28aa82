begin;
-- Whoever may create a schema could otherwise have his function run by the owner.
\ir ../_expired_keys.psql
\ir ../_diagnose.psql
select plan(6);

create schema cron;
create function cron.steal() returns text language plpgsql as $$
begin
  raise exception 'a function of somebody was called as %', current_user;
end
$$;
create view cron.job as
select 1::bigint as jobid, cron.steal() as schedule, ''::text as command, current_user::text as username, true as active,
  'pgidem.idempotency_cleanup'::name as jobname, current_database()::text as database;
create view cron.job_run_details as
select 1::bigint as runid, cron.steal() as command, current_database()::text as database, current_user::text as username, now() as start_time, now() as end_time;
create function cron.schedule(text, text, text) returns bigint language sql as $$ select length(cron.steal()) $$;
create function cron.unschedule(bigint) returns boolean language sql as $$ select cron.steal() = '' $$;
create role pgidem_test_operator;
grant usage on schema cron to public;
grant all on all tables in schema cron to public;
select pgidem.grant_operator('pgidem_test_operator') \gset
select setval('pgidem.cleanup_run_id_seq', 99) \gset

set local role pgidem_test_operator;
select is(pgidem.unschedule_cleanup(), false, 'unschedule_cleanup');
select is(pg_temp.diagnose('select pgidem.schedule_cleanup()') ->> 'code', 'ID004', 'schedule_cleanup');
select is(value, 0::numeric, 'stats') from pgidem.stats() where metric = 'cleanup_jobs';
select is(p_run, 100::bigint, 'a run that trims') from pgidem._cleanup_step(1, null);
reset role;
select is((select count(*) from pgidem._cleanup_jobs()), 0::bigint, 'no job');
select lives_ok('select pgidem._trim_run_details()', 'nothing to trim');

select * from finish();
rollback;
