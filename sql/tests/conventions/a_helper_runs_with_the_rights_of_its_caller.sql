begin;
select plan(1);

select is_empty(
  $$
    select p.proname
    from pg_proc p
    where p.pronamespace = 'pgidem'::regnamespace
      and p.proname like '\_%'
      and p.prosecdef
  $$,
  'no helper is security definer'
);

select * from finish();
rollback;
