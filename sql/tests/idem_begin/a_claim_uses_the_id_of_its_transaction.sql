begin;
-- Case 70 and L1: a subtransaction would show in xmin.
\ir ../_setup.psql
select plan(2);

select is((:begin_key).outcome, 'claimed', 'claimed');
select is(xmin, xid(pg_current_xact_id()), 'by the transaction itself') from pgidem.idempotency_keys where :this_key;

select * from finish();
rollback;
