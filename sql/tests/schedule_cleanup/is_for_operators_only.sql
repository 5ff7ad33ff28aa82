begin;
\ir ../_alone.psql
select plan(2);

update pgidem.settings set cleanup_interval = '7 minutes';
create role pgidem_test_app;
create role pgidem_test_operator;
select pgidem.grant_app('pgidem_test_app', true), pgidem.grant_operator('pgidem_test_operator') \gset

set local role pgidem_test_app;
select throws_ok('select pgidem.schedule_cleanup()', '42501', null, 'an application may not');
set local role pgidem_test_operator;
select throws_ok('select pgidem.schedule_cleanup()', '22023', null, 'an operator may: it reads the settings');
reset role;

select * from finish();
rollback;
