begin;
-- Case 17: the worker died, and its lease has ended.
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(5);

set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
select token from pgidem.idem_claim(:'user_id', :'key', :'other_fingerprint', '10 minutes', '1 day', p_attempt => gen_random_uuid()) \gset
release savepoint another_transaction;

set local test.now = '2026-03-01 12:20+00';
select outcome, token as new_token, live_until from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '5 minutes', '2 days') \gset
select is(:'outcome'::text, 'claimed', 'claimed, by another request');
select cmp_ok(:new_token::bigint, '>', :token::bigint, 'with a larger token');
select is(:'live_until'::timestamptz, '2026-03-01 12:25+00', 'and a lease of its own');
select results_eq(
  'select request_sha256, token, first_token, attempt, state, retention, response_status, response_body, finished_at, created_at, live_until, expires_at from pgidem.idempotency_record where ' || :'this_record',
  format($$values (%L::bytea, %2$s::bigint, %2$s::bigint, null::uuid, 'in_progress', interval '48 hours', null::smallint, null::bytea, null::timestamptz,
    '2026-03-01 12:20+00'::timestamptz, '2026-03-01 12:25+00'::timestamptz, '2026-03-03 12:25+00'::timestamptz)$$, :'fingerprint', :new_token),
  'nothing of the old one is left'
);
select is(count(*)::integer, 1, 'one row') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
