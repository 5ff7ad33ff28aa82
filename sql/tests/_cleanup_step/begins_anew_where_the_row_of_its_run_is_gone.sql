begin;
-- As after a crash of the server, which takes back what was not on disk.
\ir ../_expired_keys.psql
select plan(3);

select p_run as run from pgidem._cleanup_step(1, null) \gset
delete from pgidem.cleanup_run where id = :run;
select results_eq(
  format('select p_run > %s, p_deleted, p_more from pgidem._cleanup_step(1, %1$s)', :run),
  $$values (true, 1, true)$$,
  'another run, which deletes'
);
select is(count(*), 1::bigint, 'and is written down') from pgidem.cleanup_run where id > :run and deleted = 1;
select is(pg_temp.left_over(:'principal'), '03 04 05', 'the oldest first');

select * from finish();
rollback;
