/*
Whole minutes that divide an hour, hours that divide a day, or a day: anything else would come at uneven times.
*/
create or replace function pgidem._cron_schedule(
  p_interval interval
)
returns text
language plpgsql
stable
parallel safe
security invoker
as $$
declare
  v_minutes constant numeric := extract(epoch from p_interval) / 60;
begin
  return case
    when v_minutes = 1 then '* * * * *'
    when v_minutes in (2, 3, 4, 5, 6, 10, 12, 15, 20, 30) then format('*/%s * * * *', v_minutes::integer)
    when v_minutes = 60 then '0 * * * *'
    when v_minutes / 60 in (2, 3, 4, 6, 8, 12) then format('0 */%s * * *', (v_minutes / 60)::integer)
    when v_minutes = 1440 then '0 0 * * *'
  end;
end
$$;

comment on function pgidem._cron_schedule(interval) is 'An interval as a schedule of five fields, null when cron cannot express it.';

revoke all on function pgidem._cron_schedule(interval) from public;
