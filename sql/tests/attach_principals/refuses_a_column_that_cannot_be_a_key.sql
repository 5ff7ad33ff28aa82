begin;
\ir ../_diagnose.psql
select plan(14);

create table public.pgidem_test_users (
  id text primary key,
  plain uuid,
  dropped uuid unique,
  partly uuid,
  paired uuid,
  late uuid unique deferrable,
  computed uuid,
  unique (paired, plain)
);
create unique index on public.pgidem_test_users (partly) where partly is not null;
create unique index on public.pgidem_test_users ((computed::text));
alter table public.pgidem_test_users drop column dropped;

select throws_ok(
  format('call pgidem.attach_principals(%L, %L)', 'public.pgidem_test_users', name),
  '22023', 'no such table of principals', coalesce(name, 'null')
)
from unnest(array['id', 'plain', 'dropped', 'partly', 'paired', 'late', 'computed', 'missing', 'ctid', '', null]) name;
select throws_ok('call pgidem.attach_principals(null)', '22023', 'no such table of principals', 'no table');
select throws_ok($$call pgidem.attach_principals('public.pgidem_test_nothing')$$, '42P01', null, 'a table that does not exist');

select pg_temp.diagnose($$call pgidem.attach_principals('public.pgidem_test_users', 'plain')$$) as e \gset
select alike(:'e'::jsonb ->> 'detail', '%pgidem_test_users has no column plain of type uuid%', 'the detail names both');

select * from finish();
rollback;
