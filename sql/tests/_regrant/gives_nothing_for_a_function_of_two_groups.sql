begin;
\ir ../_alone.psql
select plan(1);

-- Granted by hand to somebody who only reads the settings.
create role pgidem_test_reader;
grant usage on schema pgidem to pgidem_test_reader;
grant execute on function pgidem.show_settings to pgidem_test_reader;
select pgidem._regrant() \gset
select set_eq(
  $$
    select p.proname::text from pg_proc p
    where p.pronamespace = 'pgidem'::regnamespace and has_function_privilege('pgidem_test_reader', p.oid, 'execute')
  $$,
  array['show_settings'],
  'the role has what it had'
);

select * from finish();
rollback;
