begin;
\ir ../_expired_keys.psql
select plan(4);

select is(pgidem.cleanup_batch(2), 2, 'a full batch: call again');
select is(pg_temp.left_over(:'principal'), '03 04 05', 'the oldest two are gone');
select is(pgidem.cleanup_batch(2), 1, 'the rest');
select is(pgidem.cleanup_batch(2), 0, 'nothing left to do');

select * from finish();
rollback;
