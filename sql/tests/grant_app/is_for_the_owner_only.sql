begin;
\ir ../_alone.psql
select plan(2);

create role pgidem_test_app;
create role pgidem_test_friend;
select pgidem.grant_app('pgidem_test_app', true) \gset
set local role pgidem_test_app;
select throws_ok($$select pgidem.grant_app('pgidem_test_friend')$$, '42501', null, 'an app role cannot pass its rights on');
reset role;
grant execute on function pgidem.grant_app, pgidem._grant_group, pgidem._group_functions to pgidem_test_app;
set local role pgidem_test_app;
set local client_min_messages = error;
select pgidem.grant_app('pgidem_test_friend') \gset
reset role;
select ok(not has_function_privilege('pgidem_test_friend', 'pgidem.idem_begin(uuid, uuid, text, bytea, interval, interval)', 'execute'),
  'nor with the function granted by hand: it has the rights of its caller');

select * from finish();
rollback;
