begin;
\ir ../_alone.psql
select plan(4);

-- A role granted under an earlier version, which did not have these functions.
create role pgidem_test_app;
create role pgidem_test_operator;
create role pgidem_test_nobody;
select pgidem.grant_app('pgidem_test_app') \gset
select pgidem.grant_operator('pgidem_test_operator') \gset
revoke execute on function pgidem.idem_save_final, pgidem.show_settings from pgidem_test_app, pgidem_test_operator;

prepare granted(text) as
select p.proname::text from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace and has_function_privilege($1, p.oid, 'execute');

select pgidem._regrant() \gset
select set_eq($$execute granted('pgidem_test_app')$$, pgidem._group_functions('app'), 'an app role has all of its group');
select set_eq($$execute granted('pgidem_test_operator')$$, pgidem._group_functions('operator'), 'an operator as well');
select is_empty($$execute granted('pgidem_test_nobody')$$, 'a role of no group has nothing');
select is_empty($$execute granted('public')$$, 'nor has PUBLIC');

select * from finish();
rollback;
