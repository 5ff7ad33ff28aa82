begin;
-- M9: null is between nothing.
\ir ../_setup.psql
select plan(14);

prepare save(integer) as select pgidem.idem_save_final(:'principal', :'key', 'pay', :'fingerprint', $1, '{}');

select throws_ok(format('execute save(%L)', status), '22023', 'invalid status', coalesce(status::text, 'null'))
from unnest(array[null, 0, -404, 200, 302, 399, 401, 408, 425, 428, 429, 500, 65940]) status;
select is_empty('select from pgidem.idempotency_keys where ' || :'this_key', 'nothing is written');

select * from finish();
rollback;
