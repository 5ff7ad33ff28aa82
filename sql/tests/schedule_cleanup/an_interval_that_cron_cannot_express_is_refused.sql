begin;
\ir ../_alone.psql
\ir ../_diagnose.psql
select plan(5);

create function pg_temp.schedule_at(p_interval interval) returns jsonb language plpgsql as $$
begin
  update pgidem.settings set cleanup_interval = p_interval;
  return pg_temp.diagnose('select pgidem.schedule_cleanup()');
end
$$;
select is(pg_temp.schedule_at(value) ->> 'code', '22023', value::text)
from unnest(array['7 minutes', '90 minutes', '2 days']::interval[]) value;
select pg_temp.schedule_at('7 minutes') as e \gset
select is(:'e'::jsonb ->> 'detail', 'settings.cleanup_interval is 00:07:00.', 'the detail names the value');
select alike(:'e'::jsonb ->> 'hint', 'Set it to 1, 2, %or 30 minutes, %or 12 hours, or 1 day.', 'the hint says what is valid');

select * from finish();
rollback;
