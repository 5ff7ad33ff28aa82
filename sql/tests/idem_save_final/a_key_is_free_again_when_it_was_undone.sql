begin;
\ir ../_setup.psql
select plan(2);

-- As the shell does it: the operation is rolled back, then its 4xx is stored.
savepoint operation;
select :begin_key \gset
rollback to savepoint operation;
release savepoint operation;
select is((:save_final_key).outcome, 'stored', 'stored after the rollback');
select is(xmin, xid(pg_current_xact_id()), 'without a subtransaction') from pgidem.idempotency_keys where :this_key;

select * from finish();
rollback;
