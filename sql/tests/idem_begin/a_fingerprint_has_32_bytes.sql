begin;
\ir ../_setup.psql
select plan(4);

prepare fingerprint_of(integer) as
select (pgidem.idem_begin(:'principal', :'key', 'pay', decode(repeat('00', $1), 'hex'))).outcome;

select throws_ok(format('execute fingerprint_of(%s)', bytes), '22023', 'invalid argument', bytes || ' bytes')
from unnest(array[0, 31, 33]) bytes;
select results_eq('execute fingerprint_of(32)', array['claimed'], '32 bytes');

select * from finish();
rollback;
