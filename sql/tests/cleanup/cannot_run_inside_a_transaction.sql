begin;
-- Case 73. The error is the server's own, so the comment names the function that can.
\ir ../_expired_keys.psql
select plan(3);

select throws_ok('call pgidem.cleanup()', '2D000', null, 'it commits after each batch');
select is(pg_temp.left_over(:'principal'), '01 02 03 04 05', 'nothing was deleted');
select alike(
  obj_description('pgidem.cleanup'::regproc, 'pg_proc'),
  '%block%use cleanup_batch%2D000: inside a transaction block%',
  'the comment'
);

select * from finish();
rollback;
