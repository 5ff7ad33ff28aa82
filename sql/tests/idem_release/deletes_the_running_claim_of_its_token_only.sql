begin;
-- C1: a late release must not free the claim of a successor.
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(10);

select is(pgidem.idem_release(:'user_id', :'key', 1), false, 'nothing is claimed');
savepoint another_transaction;
select token as a from :claim_key \gset
update pgidem.idempotency_record set live_until = now() - interval '1 hour' where :this_record;
release savepoint another_transaction;
savepoint another_transaction;
select token as b from :claim_key \gset
release savepoint another_transaction;
select is(pgidem.idem_release(:'user_id', :'key', :a), false, 'taken over');
select is(pgidem.idem_release(:'user_id', 'another', :b), false, 'another key');
select is((:claim_key).outcome, 'in_progress', 'the successor runs');
savepoint s;
select is(pgidem.idem_release(:'user_id', :'key', :b), true, 'its own');
select is_empty('select from pgidem.idempotency_record where ' || :'this_record', 'nothing is left');
select is(pgidem.idem_release(:'user_id', :'key', :b), false, 'once');
select is((:claim_other_request).outcome, 'claimed', 'the key is free, for any request');
rollback to savepoint s;
execute finish(:b, 'done') \gset
select is(pgidem.idem_release(:'user_id', :'key', :b), false, 'finished');
select is((:claim_key).outcome, 'replay', 'the response stays');

select * from finish();
rollback;
