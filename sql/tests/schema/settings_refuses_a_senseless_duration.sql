begin;
\ir ../_alone.psql
select plan(45);

-- PostgreSQL 15 and 16 know no infinite interval.
select throws_ok(
  format('update pgidem.settings set %s = %L', name, value),
  case
    when value is null then '23502'
    when value ~ 'infinity' and current_setting('server_version_num')::integer < 170000 then '22007'
    else '23514'
  end,
  null,
  format('%s = %s', name, coalesce(value, 'null'))
)
from unnest(array['key_ttl', 'lock_timeout', 'lease', 'retention', 'cleanup_interval']) name
cross join unnest(array[
  null, '0', '-1 minute', '1 month', '-1 month 60 days', '1 year', '3652 days 12:00:00.000001', 'infinity', '-infinity'
]) value;

select * from finish();
rollback;
