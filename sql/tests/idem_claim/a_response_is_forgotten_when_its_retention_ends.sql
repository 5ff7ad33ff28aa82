begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(4);

set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
set local test.now = '2026-03-01 12:05+00';
execute finish(:token, 'done') \gset
release savepoint another_transaction;
set local test.now = '2026-03-02 12:04:59.999999+00';
select is((:claim_key).outcome, 'replay', 'until the last microsecond, counted from the finish');
savepoint s;
set local test.now = '2026-03-02 12:05+00';
select is((:claim_other_request).outcome, 'claimed', 'claimed at the very instant, by any request');
rollback to savepoint s;
set local test.now = '2026-03-02 12:05+00';
select is((:claim_key).outcome, 'claimed', 'also by the same one');
select results_eq(
  'select state, response_status, response_content_type, response_location, response_etag, response_body, one_time_secret, finished_at from pgidem.idempotency_record where ' || :'this_record',
  $$values ('in_progress', null::smallint, null, null, null, null::bytea, false, null::timestamptz)$$,
  'nothing of the response is left'
);

select * from finish();
rollback;
