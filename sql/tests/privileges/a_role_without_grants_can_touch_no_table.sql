begin;
-- Case 68.
\ir ../_alone.psql
select plan(4 * count(*)::integer) from pg_tables where schemaname = 'pgidem';

create temporary table names as select tablename::text from pg_tables where schemaname = 'pgidem';
grant select on names to public;
create role pgidem_test_nobody;
grant usage on schema pgidem to pgidem_test_nobody;
set local role pgidem_test_nobody;
select throws_ok(format(statement, tablename), '42501', null, format(statement, tablename))
from names
cross join unnest(array[
  'select from pgidem.%I',
  'insert into pgidem.%I default values',
  'delete from pgidem.%I',
  'truncate pgidem.%I'
]) statement;
reset role;

select * from finish();
rollback;
