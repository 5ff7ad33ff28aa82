/*
The only clock of the rules, so that a test can replace it. Wait bounds read clock_timestamp() themselves: a test clock
must not stretch a wait. The standard body is parsed at creation and inlined into the callers.
*/
create or replace function pgidem._now()
returns timestamptz
language sql
volatile
parallel safe
security invoker
return pg_catalog.clock_timestamp();

comment on function pgidem._now() is
  'The current time of the database, not of the transaction. Tests replace this function; nobody else should.';

revoke all on function pgidem._now() from public;
