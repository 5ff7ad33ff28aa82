begin;
\ir ../_record.psql
select plan(6);

prepare fingerprint_of(bytea) as select (pgidem.idem_claim(:'user_id', :'key', $1)).outcome;

select throws_ok(format('execute fingerprint_of(%L)', decode(repeat('00', bytes), 'hex')), '22023', 'invalid argument', bytes || ' bytes')
from unnest(array[0, 31, 33]) bytes;
select throws_ok('execute fingerprint_of(null)', '22023', 'invalid argument', 'none');
select is_empty('select from pgidem.idempotency_record where ' || :'this_record', 'nothing is written');
select results_eq(format('execute fingerprint_of(%L)', decode(repeat('00', 32), 'hex')), array['claimed'], '32 bytes');

select * from finish();
rollback;
