begin;
-- Case 47.
\ir ../_setup.psql
select plan(4);

prepare other_key as select pgidem.idem_complete(:'principal', gen_random_uuid(), 200, '{}');
prepare other_principal as select pgidem.idem_complete(gen_random_uuid(), :'key', 200, '{}');
prepare no_key as select pgidem.idem_complete(:'principal', null, 200, '{}');

select :begin_key \gset
select throws_ok('other_key', 'ID001', null, 'another key');
select throws_ok('other_principal', 'ID001', null, 'another principal');
select throws_ok('no_key', 'ID001', null, 'null');
select is((select state from pgidem.idempotency_keys where :this_key), 'in_progress', 'the claim is as it was');

select * from finish();
rollback;
