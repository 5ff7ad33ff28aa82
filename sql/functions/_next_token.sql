/*
No sequence and no count of our own: both start again after a failover, a restore or a release of the key, and the late
worker with the old number would be its successor. No test clock either. The microseconds fit a double until the year 2255.
*/
create or replace function pgidem._next_token(
  p_former_token bigint
)
returns bigint
language sql
volatile
parallel safe
security invoker
return greatest(
  p_former_token + 1,
  pg_catalog.floor(extract(epoch from pg_catalog.clock_timestamp()) * 1000000)::bigint
);

comment on function pgidem._next_token(bigint) is
  'A token for a new claim, larger than that of the row that it replaces (null for none) and, by the clock, than those of rows that are gone.';

revoke all on function pgidem._next_token(bigint) from public;
