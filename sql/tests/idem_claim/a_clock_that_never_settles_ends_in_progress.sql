begin;
-- Dead at each look, alive at each takeover: the loop gives up after five times, and nothing is claimed.
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock_list.psql
select plan(3);

savepoint another_transaction;
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
values (:'user_id', :'key', :'fingerprint', 7, 7, '2026-03-02 12:00+00', '1 day', '2026-03-01 12:00+00', '2026-03-03 12:00+00');
release savepoint another_transaction;

-- Read, take over, read, take over ...
select format('set local test.times = %L', array(
  select case when n % 2 = 1 then '2026-03-02 12:00+00' else '2026-03-02 11:00+00' end from generate_series(1, 100) n)) \gexec
select results_eq(
  'select outcome, token, retry_after, live_until from ' || :'claim_key',
  $$values ('in_progress', null::bigint, 1, null::timestamptz)$$,
  'in_progress, to be repeated'
);
select cmp_ok(currval('readings'), '<=', 15::bigint, 'after five times');
select is(token, 7::bigint, 'the record stays') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
