begin;
-- C4: a takeover waits for that lock.
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(3);

savepoint another_transaction;
select token from :claim_key \gset
release savepoint another_transaction;
select xmax::text as free, ctid::text as place from pgidem.idempotency_record where :this_record \gset
execute assert_lease(:token) \gset
select is(:'free'::text, '0', 'free before');
select isnt(xmax::text, '0', 'locked') from pgidem.idempotency_record where :this_record;
select is(ctid::text, :'place', 'the same version') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
