begin;
-- Case 39.
\ir ../_record.psql
select plan(5);

select token from :claim_key \gset
select results_eq(
  'select outcome, response_status, content_type, location, etag, response_body, one_time_secret from pgidem.idem_finish(' ||
    format('%L, %L, %s, 201, %L, %L, %L, %L, true)', :'user_id', :'key', :token, 'text/tok_SECRET_7f3a', '/tok_SECRET_7f3a', '"tok_SECRET_7f3a"', 'tok_SECRET_7f3a'),
  $$values ('stored', 201, null, null, null, null::bytea, true)$$,
  'stored without it'
);
select unalike(k::text, '%SECRET%', 'no part of the secret stands in the row') from pgidem.idempotency_record k where :this_record;
select is(response_body, null, 'nor a body') from pgidem.idempotency_record where :this_record;
select results_eq(
  'select outcome, response_status, content_type, location, etag, response_body, one_time_secret from ' || :'claim_key',
  $$values ('replay', 201, null, null, null, null::bytea, true)$$,
  'replayed as one that is gone'
);
select results_eq('select outcome, one_time_secret from ' || :'claim_other_request', $$values ('reused', false)$$, 'another request is not told');

select * from finish();
rollback;
