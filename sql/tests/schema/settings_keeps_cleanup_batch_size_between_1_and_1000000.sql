begin;
\ir ../_alone.psql
select plan(6);

select throws_ok('update pgidem.settings set cleanup_batch_size = null', '23502', null, 'not null');
select throws_ok(format('update pgidem.settings set cleanup_batch_size = %s', value), '23514', null, 'not ' || value)
from unnest(array[0, -1, 1000001]) value;
select lives_ok(format('update pgidem.settings set cleanup_batch_size = %s', value), value::text)
from unnest(array[1, 1000000]) value;

select * from finish();
rollback;
