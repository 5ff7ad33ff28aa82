begin;
\ir ../_alone.psql
select plan(3);

create role pgidem_test_app;
create role pgidem_test_operator;
select pgidem.grant_app('pgidem_test_app', true), pgidem.grant_operator('pgidem_test_operator') \gset

set local role pgidem_test_app;
select throws_ok('select pgidem.cleanup_runs()', '42501', null, 'an application may not');
set local role pgidem_test_operator;
select lives_ok('select pgidem.cleanup_runs()', 'an operator may');
select throws_ok('select from pgidem.cleanup_run', '42501', null, 'without a right on the table');
reset role;

select * from finish();
rollback;
