begin;
\ir ../_alone.psql
select plan(3);

create role pgidem_test_operator;
select pgidem.grant_operator('pgidem_test_operator') \gset
select ok(has_schema_privilege('pgidem_test_operator', 'pgidem', 'usage'), 'USAGE on the schema');
select set_eq(
  $$
    select p.proname::text from pg_proc p
    where p.pronamespace = 'pgidem'::regnamespace and has_function_privilege('pgidem_test_operator', p.oid, 'execute')
  $$,
  pgidem._group_functions('operator'),
  'EXECUTE on the functions of the group operator'
);
select is_empty(
  $$
    select c.relname
    from pg_class c
    where c.relnamespace = 'pgidem'::regnamespace
      and c.relkind = 'r'
      and has_table_privilege('pgidem_test_operator', c.oid, 'select, insert, update, delete')
  $$,
  'no right on a table'
);

select * from finish();
rollback;
