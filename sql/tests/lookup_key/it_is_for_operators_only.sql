begin;
\ir ../_setup.psql
\ir ../_alone.psql
select plan(4);

create role pgidem_test_app;
create role pgidem_test_operator;
select pgidem.grant_app('pgidem_test_app', true), pgidem.grant_operator('pgidem_test_operator') \gset
select :begin_key, :complete_key \gset

set local role pgidem_test_operator;
select is(state, 'completed', 'an operator may look') from pgidem.lookup_key(:'principal', :'key');
select throws_ok('table pgidem.idempotency_keys', '42501', null, 'without a right on the table');
set local role pgidem_test_app;
select throws_ok(format('select pgidem.lookup_key(%L, %L)', :'principal', :'key'), '42501', null, 'an application may not');
select throws_ok('select pgidem._runner(1)', '42501', null, 'nor ask who runs a key');
reset role;

select * from finish();
rollback;
