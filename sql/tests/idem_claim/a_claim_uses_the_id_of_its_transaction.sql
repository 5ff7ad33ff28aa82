begin;
-- Case 70 and L1: a subtransaction would show in xmin.
\ir ../_record.psql
select plan(4);

select outcome, token from :claim_key \gset
select is(:'outcome'::text, 'claimed', 'claimed');
select is(xmin, xid(pg_current_xact_id()), 'by the transaction itself') from pgidem.idempotency_record where :this_record;
execute finish(:token, 'done') \gset
select is(:'outcome'::text, 'stored', 'finished');
select is(xmin, xid(pg_current_xact_id()), 'by the transaction itself too') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
