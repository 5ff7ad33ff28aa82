begin;
-- Case 10: a hopeless repeat is told so at once.
\ir ../_record.psql
select plan(3);

prepare reuse as select outcome, token, retry_after, response_status, content_type, location, etag, response_body, one_time_secret from :claim_other_request;

select token from :claim_key \gset
select results_eq('reuse', $$values ('reused', null::bigint, null::integer, null::integer, null, null, null, null::bytea, false)$$,
  'while it runs');
execute finish(:token, 'done') \gset
select results_eq('reuse', $$values ('reused', null::bigint, null::integer, null::integer, null, null, null, null::bytea, false)$$,
  'when it is finished, without the response of the first request');
select is(request_sha256, :'fingerprint'::bytea, 'the record is that of the first request') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
