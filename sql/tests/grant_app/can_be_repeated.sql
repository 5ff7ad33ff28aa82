begin;
\ir ../_alone.psql
select plan(1);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app') \gset
create temporary table before as select oid, proacl::text as rights from pg_proc where pronamespace = 'pgidem'::regnamespace;
select pgidem.grant_app('pgidem_test_app') \gset
select set_eq(
  $$select oid, proacl::text from pg_proc where pronamespace = 'pgidem'::regnamespace$$,
  'select oid, rights from before',
  'the second time changes nothing'
);

select * from finish();
rollback;
