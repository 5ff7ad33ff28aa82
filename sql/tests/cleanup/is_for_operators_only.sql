begin;
\ir ../_expired_keys.psql
select plan(2);

create role pgidem_test_app;
create role pgidem_test_operator;
select pgidem.grant_app('pgidem_test_app', true), pgidem.grant_operator('pgidem_test_operator') \gset

set local role pgidem_test_app;
select throws_ok('call pgidem.cleanup()', '42501', null, 'an application may not');
set local role pgidem_test_operator;
select throws_ok('call pgidem.cleanup()', '2D000', null, 'an operator may: it comes to its commit');
reset role;

select * from finish();
rollback;
