begin;
\ir ../_record.psql
\ir ../_clock.psql
select plan(2);

set local test.now = '2026-03-01 12:00+00';
select token, live_until from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day',
  p_attempt => '00000000-0000-4000-8000-000000000001') \gset
select results_eq(
  'select request_sha256, token, first_token, attempt, state, retention, response_status, response_content_type, response_location, response_etag, response_body, one_time_secret, finished_at from pgidem.idempotency_record where ' || :'this_record',
  format($$values (%L::bytea, %2$s::bigint, %2$s::bigint, '00000000-0000-4000-8000-000000000001'::uuid, 'in_progress', interval '24 hours',
    null::smallint, null, null, null, null::bytea, false, null::timestamptz)$$, :'fingerprint', :token),
  'fingerprint, token, attempt, retention and state, no response'
);
select results_eq(
  'select created_at, live_until, expires_at from pgidem.idempotency_record where ' || :'this_record',
  $$values ('2026-03-01 12:00+00'::timestamptz, '2026-03-01 12:10+00'::timestamptz, '2026-03-02 12:10+00'::timestamptz)$$,
  'the cleanup comes after lease and retention, so that a finish within the lease moves no index'
);

select * from finish();
rollback;
