begin;
-- It tells a late worker whether what is recorded answers its own request.
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(2);

set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
select token as first from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes') \gset
release savepoint another_transaction;
set local test.now = '2026-03-01 12:10+00';
savepoint another_transaction;
select token as second from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes') \gset
release savepoint another_transaction;
select results_eq('select token, first_token from pgidem.idempotency_record where ' || :'this_record',
  format('values (%s::bigint, %s::bigint)', :second, :first), 'the same request');
set local test.now = '2026-03-01 12:20+00';
select token as third from :claim_other_request \gset
select results_eq('select token, first_token from pgidem.idempotency_record where ' || :'this_record',
  format('values (%s::bigint, %1$s::bigint)', :third), 'another one');

select * from finish();
rollback;
