begin;
\ir ../_stored_key.psql
select plan(3);

create role pgidem_test_app;
create role pgidem_test_operator;
select pgidem.grant_app('pgidem_test_app', true), pgidem.grant_operator('pgidem_test_operator') \gset

set local role pgidem_test_app;
select throws_ok(format('select pgidem.forget_principal(%L)', :'principal'), '42501', null, 'an application may not');
set local role pgidem_test_operator;
select is(pgidem.forget_principal(:'principal'), 1::bigint, 'an operator may forget');
select throws_ok('delete from pgidem.idempotency_keys', '42501', null, 'without a right on the table');
reset role;

select * from finish();
rollback;
