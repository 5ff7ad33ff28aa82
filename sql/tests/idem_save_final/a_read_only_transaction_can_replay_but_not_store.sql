begin;
-- Case 15.
\ir ../_setup.psql
select plan(2);

prepare fresh as select pgidem.idem_save_final(:'principal', gen_random_uuid(), 'pay', :'fingerprint', 404, '{}');

select :save_final_key \gset
set transaction read only;
select is((:save_final_key).outcome, 'replay', 'a stored response answers');
select throws_ok('fresh', '25006', null, 'a fresh key is 25006');

select * from finish();
rollback;
