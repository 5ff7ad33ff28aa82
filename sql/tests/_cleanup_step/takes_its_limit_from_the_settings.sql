begin;
\ir ../_expired_keys.psql
select plan(3);

update pgidem.settings set cleanup_batch_size = 2;
select is(p_deleted, 2, 'settings.cleanup_batch_size') from pgidem._cleanup_step(null, null);
select throws_ok('select pgidem._cleanup_step(0, null)', '22023', 'invalid argument', 'zero');
select is(pg_temp.left_over(:'principal'), '03 04 05', 'nothing more was deleted');

select * from finish();
rollback;
