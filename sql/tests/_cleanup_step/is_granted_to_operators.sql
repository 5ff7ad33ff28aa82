begin;
-- The one helper that is: the procedure cleanup has the rights of its caller.
\ir ../_alone.psql
select plan(3);

create role pgidem_test_app;
create role pgidem_test_operator;
select pgidem.grant_app('pgidem_test_app', true), pgidem.grant_operator('pgidem_test_operator') \gset
select is(p.oid::regproc::text, 'pgidem._cleanup_step', 'an operator may execute one helper')
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname like '\_%'
  and has_function_privilege('pgidem_test_operator', p.oid, 'execute');
set local role pgidem_test_operator;
select ok(p_run is not null, 'it has the rights of the owner') from pgidem._cleanup_step(1, null);
set local role pgidem_test_app;
select throws_ok('select pgidem._cleanup_step(1, null)', '42501', null, 'an application may not');
reset role;

select * from finish();
rollback;
