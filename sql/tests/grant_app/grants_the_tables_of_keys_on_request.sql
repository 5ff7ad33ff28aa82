begin;
\ir ../_alone.psql
select plan(4);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app', p_tables => true) \gset
select set_eq(
  $$
    select c.relname || ' ' || a.privilege_type
    from pg_class c
    cross join lateral aclexplode(c.relacl) a
    where c.relnamespace = 'pgidem'::regnamespace and a.grantee = 'pgidem_test_app'::regrole
  $$,
  $$
    select tablename || ' ' || privilege
    from unnest(array['idempotency_keys', 'idempotency_record']) tablename
    cross join unnest(array['SELECT', 'INSERT', 'UPDATE', 'DELETE']) privilege
  $$,
  'select, insert, update and delete, on the tables of keys only'
);
select ok(has_function_privilege('pgidem_test_app', 'pgidem.idem_begin(uuid, uuid, text, bytea, interval, interval)', 'execute'),
  'besides the functions');
set local role pgidem_test_app;
select lives_ok('select from pgidem.idempotency_keys', 'which the role can read then');
select lives_ok('select from pgidem.idempotency_record', 'both of them');
reset role;

select * from finish();
rollback;
