begin;
\ir ../_expired_keys.psql
select plan(2);

update pgidem.settings set cleanup_batch_size = 1;
select is(pgidem.cleanup_batch(), 1, 'settings.cleanup_batch_size');
delete from pgidem.settings;
select throws_ok('select pgidem.cleanup_batch()', '22023', 'invalid argument', 'no settings, no limit');

select * from finish();
rollback;
