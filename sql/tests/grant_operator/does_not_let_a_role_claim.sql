begin;
\ir ../_setup.psql
\ir ../_alone.psql
select plan(2);

create role pgidem_test_operator;
select pgidem.grant_operator('pgidem_test_operator') \gset
set local role pgidem_test_operator;
select throws_ok('select ' || :'begin_key', '42501', null, 'idem_begin is for applications');
select isnt(pgidem.version(), null, 'version is for operators');
reset role;

select * from finish();
rollback;
