begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(7);

savepoint another_transaction;
select token from :claim_key \gset
execute finish(:token, 'done') \gset
select pgidem.idem_claim(:'user_id', 'dead', :'fingerprint') \gset
update pgidem.idempotency_record set live_until = now() - interval '1 hour' where user_id = :'user_id' and idem_key = 'dead';
select pgidem.idem_claim(:'user_id', 'another', :'fingerprint') \gset
release savepoint another_transaction;

select is(pgidem.forget_key(:'user_id', :'key'), true, 'a stored response');
select is(pgidem.forget_key(:'user_id', :'key'), false, 'once');
select is((:claim_other_request).outcome, 'claimed', 'the next request runs');
select is(pgidem.forget_key(:'user_id', 'dead'), true, 'a lease that has ended');
select is(pgidem.forget_key(:'user_id', 'unknown'), false, 'nothing is known');
select is(pgidem.forget_key('another user', 'another'), false, 'of another user either');
select is((pgidem.idem_claim(:'user_id', 'another', :'fingerprint')).outcome, 'in_progress', 'another key stays');

select * from finish();
rollback;
