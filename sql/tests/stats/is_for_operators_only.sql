begin;
\ir ../_alone.psql
select plan(2);

create role pgidem_test_app;
create role pgidem_test_operator;
select pgidem.grant_app('pgidem_test_app', true), pgidem.grant_operator('pgidem_test_operator') \gset

set local role pgidem_test_app;
select throws_ok('select * from pgidem.stats()', '42501', null, 'an application may not');
set local role pgidem_test_operator;
select is(count(*), 31::bigint, 'an operator sees every figure') from pgidem.stats();
reset role;

select * from finish();
rollback;
