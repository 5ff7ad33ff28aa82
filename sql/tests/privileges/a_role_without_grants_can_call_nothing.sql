begin;
-- Case 68.
\ir ../_alone.psql
\ir ../_calls.psql
select plan(2 * count(*)::integer) from calls;

create role pgidem_test_nobody;
set local role pgidem_test_nobody;
select throws_ok(statement, '42501', null, name || ' without USAGE on the schema') from calls;
reset role;
grant usage on schema pgidem to pgidem_test_nobody;
set local role pgidem_test_nobody;
select throws_ok(statement, '42501', null, name || ' with it') from calls;
reset role;

select * from finish();
rollback;
