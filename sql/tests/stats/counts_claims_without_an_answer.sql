begin;
\ir ../_record.psql
\ir ../_clock.psql
select plan(5);

set local test.now = '2000-03-02 12:00+00';
select gen_random_uuid() as principal \gset
-- What earlier tests left behind would make the tables large.
savepoint empty_tables;
truncate pgidem.idempotency_keys, pgidem.idempotency_record;
-- A stored answer, a committed claim that has expired, and two that live.
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', state, status, null, null, '2000-03-01 12:00+00', expires_at::timestamptz
from (values ('completed', 200, '2000-03-03 12:00+00'), ('in_progress', null, '2000-03-02 12:00+00'),
  ('in_progress', null, '2000-03-02 12:00:01+00'), ('in_progress', null, '2000-03-03 12:00+00')) k (state, status, expires_at);
-- A stored answer, three leases that run and one whose end has come.
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, response_status, finished_at, live_until, retention, created_at, expires_at)
select :'user_id', n::text, :'fingerprint', 1, 1, state, status, finished::timestamptz, live_until::timestamptz, '1 day', '2000-03-02 11:00+00', '2000-03-03 12:00+00'
from (values (1, 'completed', 200, '2000-03-02 11:30+00', '2000-03-03 11:30+00'), (2, 'in_progress', null, null, '2000-03-02 12:00:01+00'),
  (3, 'in_progress', null, null, '2000-03-02 12:01+00'), (4, 'in_progress', null, null, '2000-03-02 12:10+00'),
  (5, 'in_progress', null, null, '2000-03-02 12:00+00')) r (n, state, status, finished, live_until);
select string_agg(concat_ws(' ', table_name, metric, value, is_estimate), ', ' order by table_name, metric) as small
from pgidem.stats() where metric in ('running', 'abandoned') \gset

-- 512 pages: half of their claims have an answer.
rollback to savepoint empty_tables;
truncate pgidem.idempotency_keys;
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), repeat('x', 1900), :'fingerprint', case n % 2 when 0 then 'in_progress' else 'completed' end, null, null, null,
  '2000-03-02 12:00+00', '2000-03-03 12:00+00'
from generate_series(1, 2048) n;
select p_abandoned as a_quarter, p_is_estimate as is_estimate from pgidem._unanswered('pgidem.idempotency_keys', 128) \gset
select p_abandoned as all_pages, p_is_estimate as all_is_estimate from pgidem._unanswered('pgidem.idempotency_keys', 512) \gset
rollback to savepoint empty_tables;

select is(:'small'::text, 'idempotency_keys abandoned 2 f, idempotency_keys running f, idempotency_record abandoned 1 f, idempotency_record running 3 f',
  'what each table holds');
select is(:'is_estimate'::boolean, true, 'of a table with more pages than may be read an estimate');
select cmp_ok(abs(:a_quarter - 1024), '<', 512, 'which is near the truth');
select is(:all_pages, 1024, 'the truth where all may be read');
select is(:'all_is_estimate'::boolean, false, 'which is no estimate');

select * from finish();
rollback;
