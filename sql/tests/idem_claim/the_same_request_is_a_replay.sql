begin;
\ir ../_record.psql
select plan(2);

select token from :claim_key \gset
execute finish(:token, 'done') \gset
select results_eq(
  'select outcome, token, retry_after, response_status, content_type, location, etag, response_body, one_time_secret from ' || :'claim_key',
  $$values ('replay', null::bigint, null::integer, 201, 'text/plain', '/orders/1', '"1"', 'done'::bytea, false)$$,
  'the stored response'
);
select results_eq(
  'select live_until from ' || :'claim_key',
  'select live_until from pgidem.idempotency_record where ' || :'this_record',
  'and how long it answers'
);

select * from finish();
rollback;
