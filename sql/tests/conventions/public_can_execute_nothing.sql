begin;
-- Case 68.
\ir ../_alone.psql
select plan(3);

prepare offenders as
select p.oid::regprocedure::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and has_function_privilege('public', p.oid, 'execute');

select is_empty('offenders', 'PUBLIC has EXECUTE on no function');
select ok(not has_schema_privilege('public', 'pgidem', 'usage, create'), 'nor any right on the schema');

create function pgidem.planted() returns void language sql return null;
select set_eq('offenders', array['pgidem.planted()'], 'a function without revoke is found');

select * from finish();
rollback;
