/*
A single expression, so that it is inlined into the callers. Infinity, of PostgreSQL 17, is larger than the limit.
*/
create or replace function pgidem._duration(
  p_name text,
  p_value interval
)
returns interval
language sql
stable
parallel safe
security invoker
return case
  when pg_catalog.date_part('year', p_value) operator(pg_catalog.=) 0
    and pg_catalog.date_part('month', p_value) operator(pg_catalog.=) 0
    and p_value operator(pg_catalog.>) interval '0'
    and p_value operator(pg_catalog.<=) interval '3652 days 12 hours'
  then pgidem._seconds(p_value)
  else pgidem._refuse_duration(p_name, p_value)
end;

comment on function pgidem._duration(text, interval) is
  'Checks a duration and returns it in exact seconds. Raises 22023 when it is null, zero, negative, infinite, over 10 years or holds months. p_name: what to call it in the error.';

revoke all on function pgidem._duration(text, interval) from public;
