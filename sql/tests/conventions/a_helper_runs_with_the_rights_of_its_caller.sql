begin;
select plan(1);

-- _cleanup_step does the work of a procedure, which has the rights of its caller.
select set_eq(
  $$
    select p.proname
    from pg_proc p
    where p.pronamespace = 'pgidem'::regnamespace
      and p.proname like '\_%'
      and p.prosecdef
  $$,
  array['_cleanup_step'],
  'no other helper is security definer'
);

select * from finish();
rollback;
