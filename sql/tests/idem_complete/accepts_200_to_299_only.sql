begin;
-- M9: null is between nothing.
\ir ../_setup.psql
select plan(12);

prepare complete(integer) as select pgidem.idem_complete(:'principal', :'key', $1, '{}');

select :begin_key \gset
select throws_ok(format('execute complete(%L)', status), '22023', 'invalid status', coalesce(status::text, 'null'))
from unnest(array[null, 0, -200, 100, 199, 300, 404, 500, 65736]) status;
select is((select state from pgidem.idempotency_keys where :this_key), 'in_progress', 'nothing is written');

select lives_ok('execute complete(299)', '299');
select gen_random_uuid() as key \gset
select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint') \gset
prepare complete_another(integer) as select pgidem.idem_complete(:'principal', :'key', $1, '{}');
select lives_ok('execute complete_another(200)', '200');

select * from finish();
rollback;
