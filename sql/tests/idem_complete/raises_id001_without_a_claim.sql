begin;
-- Case 47.
\ir ../_setup.psql
select plan(1);

select throws_ok('select ' || :'complete_key', 'ID001', 'no claim of this transaction to complete', 'no begin');

select * from finish();
rollback;
