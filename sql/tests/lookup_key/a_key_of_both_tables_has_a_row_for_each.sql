begin;
\ir ../_stored_key.psql
select plan(2);

savepoint another_transaction;
select token from pgidem.idem_claim(:'principal', :'key', :'fingerprint') \gset
select pgidem.idem_finish(:'principal', :'key', :token, 204, null, null, null, null, true) \gset
release savepoint another_transaction;
select results_eq(
  format('select table_name, response_status, one_time_secret, response_body from pgidem.lookup_key(%L, %L, true)', :'principal', :'key'),
  $$values ('idempotency_keys', 201, false, '{"amount": 1}'), ('idempotency_record', 204, true, null)$$,
  'idempotency_keys first'
);
select results_eq(
  format('select table_name from pgidem.lookup_key(%L, %L)', upper(:'principal'), :'key'),
  array['idempotency_keys'],
  'a user is compared byte by byte, a UUID is not'
);

select * from finish();
rollback;
