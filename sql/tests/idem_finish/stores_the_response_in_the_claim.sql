begin;
\ir ../_record.psql
\ir ../_clock.psql
select plan(4);

set local test.now = '2026-03-01 12:00+00';
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
set local test.now = '2026-03-01 12:05+00';
prepare finished as
select * from pgidem.idem_finish(:'user_id', :'key', :token, 201, 'text/plain', '/orders/1', '"1"', 'done');
select results_eq(
  'finished',
  $$values ('stored', null::bigint, null::integer, '2026-03-02 12:05+00'::timestamptz, 201, 'text/plain', '/orders/1', '"1"', 'done'::bytea, false)$$,
  'stored, and what a replay will be'
);
select results_eq(
  'select request_sha256, token, first_token, state, response_status, response_content_type, response_location, response_etag, response_body, one_time_secret from pgidem.idempotency_record where ' || :'this_record',
  format($$values (%L::bytea, %2$s::bigint, %2$s::bigint, 'completed', 201::smallint, 'text/plain', '/orders/1', '"1"', 'done'::bytea, false)$$, :'fingerprint', :token),
  'the row'
);
select results_eq(
  'select created_at, finished_at, live_until, expires_at from pgidem.idempotency_record where ' || :'this_record',
  $$values ('2026-03-01 12:00+00'::timestamptz, '2026-03-01 12:05+00'::timestamptz, '2026-03-02 12:05+00'::timestamptz, '2026-03-02 12:10+00'::timestamptz)$$,
  'the retention counts from the finish; the cleanup comes when it would have'
);
select results_eq(
  'select live_until, outcome from ' || :'claim_key', $$values ('2026-03-02 12:05+00'::timestamptz, 'replay')$$, 'as a repeat is told');

select * from finish();
rollback;
