begin;
\ir ../_alone.psql
select plan(2);

create role pgidem_test_attach;
create table public.pgidem_test_users (id uuid primary key);
grant references on public.pgidem_test_users to pgidem_test_attach;
grant usage on schema pgidem to pgidem_test_attach;

set local role pgidem_test_attach;
select throws_ok($$call pgidem.attach_principals('public.pgidem_test_users')$$, '42501', null, 'not granted');
reset role;
grant execute on procedure pgidem.attach_principals to pgidem_test_attach;
set local role pgidem_test_attach;
select throws_ok($$call pgidem.attach_principals('public.pgidem_test_users')$$, '42501', null,
  'granted by hand, it has the rights of its caller');
reset role;

select * from finish();
rollback;
