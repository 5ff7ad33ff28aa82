create or replace function pgidem._diagnose_cleanup()
returns setof pgidem.diagnosis
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_now constant timestamptz := pgidem._now();
  v_interval constant interval := coalesce((select s.cleanup_interval from pgidem.settings s where s.singleton), interval '1 minute');
  v_patience constant interval := greatest(5 * v_interval, interval '15 minutes');
  v_wanted constant text := pgidem._cron_schedule(v_interval);
  v_jobs record;
  v_started interval;
  v_ended interval;
  v_backlog interval;
begin
  select count(*) as known, count(*) filter (where j.p_active) as active, string_agg(j.p_schedule, ', ') filter (where j.p_active) as schedule
  into v_jobs
  from pgidem._cleanup_jobs() j;
  select date_trunc('second', v_now - max(r.started_at)), date_trunc('second', v_now - max(r.ended_at))
  into v_started, v_ended
  from pgidem.cleanup_run r;
  return next pgidem._finding('cleanup_schedule',
    case
      when v_jobs.active > 0 and v_jobs.schedule = v_wanted then 'ok'
      when v_jobs.known = 0 and v_started <= v_patience then 'ok'
      else 'warn'
    end,
    case
      when v_jobs.active > 0 and v_jobs.schedule = v_wanted then 'pg_cron runs it: ' || v_wanted
      when v_jobs.active > 0 then format('pg_cron runs it at %s, and cleanup_interval is %s', v_jobs.schedule, v_interval)
      when v_jobs.known > 0 then 'its job is not active'
      when v_started <= v_patience then format('no job of pg_cron, something else runs it: the last time %s ago', v_started)
      when exists (select from pg_extension e where e.extname = 'pg_cron') then 'pg_cron is here and has no job for it'
      else 'nothing runs it, and pg_cron is not in this database'
    end,
    case
      when v_jobs.known > 0 or exists (select from pg_extension e where e.extname = 'pg_cron') then 'As an operator run: select pgidem.schedule_cleanup()'
      else 'Let `pgidem cleanup --every 1m` run beside the application, or install pg_cron and run: select pgidem.schedule_cleanup()'
    end);

  return next pgidem._finding('cleanup_success', case when v_ended <= v_patience then 'ok' else 'warn' end,
    coalesce('the last whole run ended ' || v_ended || ' ago', 'no run has come to its end yet'),
    'Run: call pgidem.cleanup(). If it fails, the error says why; if not, see whether what schedules it can connect (cron.job_run_details)');

  v_backlog := date_trunc('second', v_now - least(
    (select min(k.expires_at) from pgidem.idempotency_keys k),
    (select min(k.expires_at) from pgidem.idempotency_record k)));
  return next pgidem._finding('cleanup_backlog',
    case when v_backlog > interval '1 day' then 'fail' when v_backlog > v_patience then 'warn' else 'ok' end,
    case
      when v_backlog > interval '0' then format('the first expired key has waited %s', v_backlog)
      else 'no expired key waits'
    end,
    'Run: call pgidem.cleanup(). If it comes back again and again, raise cleanup_batch_size in pgidem.settings');
end
$$;

comment on function pgidem._diagnose_cleanup() is 'The checks of doctor that ask whether the cleanup is scheduled, runs and keeps up.';

revoke all on function pgidem._diagnose_cleanup() from public;
