begin;
\ir ../_alone.psql
select plan(2);

create role pgidem_test_operator;
select pgidem.grant_operator('pgidem_test_operator') \gset
set local role pgidem_test_operator;
select throws_ok($$select pgidem.grant_operator('pgidem_test_operator')$$, '42501', null, 'an operator cannot make operators');
select throws_ok($$select pgidem.grant_app('pgidem_test_operator')$$, '42501', null, 'nor become an application');
reset role;

select * from finish();
rollback;
