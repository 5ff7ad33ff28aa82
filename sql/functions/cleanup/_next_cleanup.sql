/*
pg_cron keeps to the clock, so its next turn can be told as long as the job has the schedule of the settings. Everything else,
from a timer to a person, is only known by the pace of its last two runs.
*/
create or replace function pgidem._next_cleanup(
  p_now timestamptz,
  -- Others than these may not read it.
  p_zone text default case when pg_has_role('pg_read_all_settings', 'usage') then current_setting('cron.timezone', true) end,
  out p_at timestamptz,
  out p_is_estimate boolean
)
returns record
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_interval constant interval := (select s.cleanup_interval from pgidem.settings s where s.singleton);
  v_zone constant text := coalesce(p_zone, 'GMT');
begin
  p_is_estimate := not exists (
    select from pgidem._cleanup_jobs() j where j.p_active and j.p_schedule = pgidem._cron_schedule(v_interval)
  );
  if p_is_estimate then
    select max(r.started_at) + (max(r.started_at) - min(r.started_at))
    into p_at
    from (select c.started_at from pgidem.cleanup_run c order by c.id desc limit 2) r
    having count(*) = 2;
  else
    p_at := (date_bin(v_interval, p_now at time zone v_zone, timestamp '2000-01-01') + v_interval) at time zone v_zone;
  end if;
end
$$;

comment on function pgidem._next_cleanup(timestamptz, text) is
  'When the next run of the cleanup is due, null when nothing tells; p_is_estimate when that is the pace of the last two runs and no job of pg_cron. p_zone: the time zone that pg_cron keeps to, null for one that has no such setting.';

revoke all on function pgidem._next_cleanup(timestamptz, text) from public;
