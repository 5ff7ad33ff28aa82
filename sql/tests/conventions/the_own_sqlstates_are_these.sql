begin;
select plan(1);

-- ID001: idem_complete/. ID002: forget_key/. ID003: idem_finish/, idem_assert_lease/. ID004: schedule_cleanup/, ID005: on a server
-- with pg_cron, by the Go tests. ID999 is caught where it is raised and never reaches a caller.
select set_eq(
  $$
    select distinct m.code[1]
    from pg_proc p
    cross join lateral regexp_matches(p.prosrc, '''(ID[0-9A-Z]{3})''', 'g') m (code)
    where p.pronamespace = 'pgidem'::regnamespace
  $$,
  array['ID001', 'ID002', 'ID003', 'ID004', 'ID005', 'ID999'],
  'the codes that the functions know'
);

select * from finish();
rollback;
