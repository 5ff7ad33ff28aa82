begin;
\ir ../_alone.psql
select plan(2);

create role pgidem_test_operator;
select pgidem.grant_operator('pgidem_test_operator') \gset
set local role pgidem_test_operator;
select is(lock_timeout, interval '2 seconds', 'the settings') from pgidem.show_settings();
select throws_ok('table pgidem.settings', '42501', null, 'not the table');
reset role;

select * from finish();
rollback;
