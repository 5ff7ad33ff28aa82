begin;
\ir ../_setup.psql
select plan(6);

prepare without_principal as select pgidem.idem_begin(null, :'key', 'pay', :'fingerprint');
prepare without_key as select pgidem.idem_begin(:'principal', null, 'pay', :'fingerprint');
prepare without_action as select pgidem.idem_begin(:'principal', :'key', null, :'fingerprint');
prepare without_fingerprint as select pgidem.idem_begin(:'principal', :'key', 'pay', null);

select throws_ok('without_principal', '22023', 'invalid argument', 'p_principal_id');
select throws_ok('without_key', '22023', 'invalid argument', 'p_key');
select throws_ok('without_action', '22023', 'invalid argument', 'p_action');
select throws_ok('without_fingerprint', '22023', 'invalid argument', 'p_request_sha256');
select is_empty('select from pgidem.idempotency_keys where ' || :'this_key', 'nothing is written');

-- A row that would answer changes nothing about it.
select :begin_key \gset
select :complete_key \gset
select throws_ok('without_fingerprint', '22023', 'invalid argument', 'a stored response is not given away');

select * from finish();
rollback;
