/*
Adding '1 day' to a timestamptz follows the session's time zone, and one day in spring has 23 hours.
*/
create or replace function pgidem._seconds(
  p_value interval
)
returns interval
language sql
immutable
parallel safe
security invoker
return pg_catalog.make_interval(secs => pg_catalog.date_part('epoch', p_value));

comment on function pgidem._seconds(interval) is 'An interval without months in exact seconds.';

revoke all on function pgidem._seconds(interval) from public;
