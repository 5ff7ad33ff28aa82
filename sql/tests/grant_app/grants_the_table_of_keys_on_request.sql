begin;
\ir ../_alone.psql
select plan(3);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app', p_tables => true) \gset
select set_eq(
  $$
    select a.privilege_type
    from pg_class c
    cross join lateral aclexplode(c.relacl) a
    where c.oid = 'pgidem.idempotency_keys'::regclass and a.grantee = 'pgidem_test_app'::regrole
  $$,
  array['SELECT', 'INSERT', 'UPDATE', 'DELETE'],
  'select, insert, update and delete'
);
select ok(has_function_privilege('pgidem_test_app', 'pgidem.idem_begin(uuid, uuid, text, bytea, interval, interval)', 'execute'),
  'besides the functions');
set local role pgidem_test_app;
select lives_ok('select from pgidem.idempotency_keys', 'which the role can read then');
reset role;

select * from finish();
rollback;
