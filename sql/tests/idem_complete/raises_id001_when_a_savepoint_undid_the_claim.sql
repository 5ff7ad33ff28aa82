begin;
-- Case 47.
\ir ../_setup.psql
select plan(2);

savepoint before_begin;
select :begin_key \gset
rollback to savepoint before_begin;
select throws_ok('select ' || :'complete_key', 'ID001', null, 'rolled back to a savepoint before begin');
select is_empty('select from pgidem.idempotency_keys where ' || :'this_key', 'no record without a claim');

select * from finish();
rollback;
