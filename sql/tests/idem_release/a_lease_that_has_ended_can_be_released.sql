begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(2);

savepoint another_transaction;
select token from :claim_key \gset
update pgidem.idempotency_record set live_until = now() - interval '1 hour' where :this_record;
release savepoint another_transaction;
select is(pgidem.idem_release(:'user_id', :'key', :token), true, 'released');
select is_empty('select from pgidem.idempotency_record where ' || :'this_record', 'nothing is left');

select * from finish();
rollback;
