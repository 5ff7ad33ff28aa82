begin;
\ir ../_expired_keys.psql
select plan(3);

select throws_ok('select pgidem.cleanup_batch(0)', '22023', 'invalid argument', 'zero');
select throws_ok('select pgidem.cleanup_batch(-1)', '22023', 'invalid argument', 'negative');
select is(pg_temp.left_over(:'principal'), '01 02 03 04 05', 'nothing was deleted');

select * from finish();
rollback;
