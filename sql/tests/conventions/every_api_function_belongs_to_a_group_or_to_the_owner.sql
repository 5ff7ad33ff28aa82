begin;
select plan(2);

select set_eq(
  $$
    select p.proname
    from pg_proc p
    where p.pronamespace = 'pgidem'::regnamespace
      and p.proname not like '\_%'
      and p.proname <> all (pgidem._group_functions('app') || pgidem._group_functions('operator'))
  $$,
  array['attach_principals', 'grant_app', 'grant_operator'],
  'functions of no group: those for the owner'
);
select is_empty(
  $$
    select f
    from unnest(pgidem._group_functions('app') || pgidem._group_functions('operator')) f
    where not exists (select from pg_proc p where p.pronamespace = 'pgidem'::regnamespace and p.proname = f)
  $$,
  'a group names only functions that exist'
);

select * from finish();
rollback;
