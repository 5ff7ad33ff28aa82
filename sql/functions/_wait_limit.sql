/*
At least 1 ms, since a lock_timeout of 0 waits for ever; at most 24 days, since a larger number does not fit.
*/
create or replace function pgidem._wait_limit(
  p_deadline timestamptz
)
returns text
language sql
volatile
parallel safe
security invoker
return pg_catalog.concat(
  greatest(1, least(2073600000, pg_catalog.ceil(extract(epoch from p_deadline - pg_catalog.clock_timestamp()) * 1000))),
  'ms'
);

comment on function pgidem._wait_limit(timestamptz) is 'What is left until a deadline, as a value for lock_timeout.';

revoke all on function pgidem._wait_limit(timestamptz) from public;
