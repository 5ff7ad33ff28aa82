begin;
\ir ../_alone.psql
select plan(2);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app') \gset
select ok(has_schema_privilege('pgidem_test_app', 'pgidem', 'usage') and not has_schema_privilege('pgidem_test_app', 'pgidem', 'create'),
  'USAGE and not CREATE on the schema');
select set_eq(
  $$
    select p.proname::text from pg_proc p
    where p.pronamespace = 'pgidem'::regnamespace and has_function_privilege('pgidem_test_app', p.oid, 'execute')
  $$,
  pgidem._group_functions('app'),
  'EXECUTE on the functions of the group app, on no helper and nothing for operators or the owner'
);

select * from finish();
rollback;
