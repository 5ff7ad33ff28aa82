begin;
-- Case 74, row by row: neither a scan of the table nor of another index, whatever the statistics say.
\ir ../_record.psql
select plan(3);

\ir ../_empty_record_table.psql
create temporary view visits as
select seq_scan, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as visited from pg_stat_xact_user_tables where relid = 'pgidem.idempotency_record'::regclass;
-- Two of one instant, so that the plan of this form is made now.
savepoint planned;
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
select :'user_id', n::text, :'fingerprint', 1, 1, now() - interval '1 hour', '1 day', now() - interval '1 day',
  case when n <= 0 then now() - interval '1 minute' else now() + n * interval '1 minute' end
from generate_series(-1, 0) n;
select pgidem.cleanup_batch(1) \gset
delete from pgidem.idempotency_record;
release savepoint planned;
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
select :'user_id', n::text, :'fingerprint', 1, 1, now() - interval '1 hour', '1 day', now() - interval '1 day',
  case when n <= 0 then now() - interval '1 minute' else now() + n * interval '1 minute' end
from generate_series(-299, 500) n;
select seq_scan as seq_before, visited as visited_before from visits \gset
select pgidem.cleanup_batch(10) as deleted \gset
select seq_scan as seq_after, visited as visited_after from visits \gset
rollback to savepoint empty_table;

select is(:deleted, 10, 'as many as the limit');
select is(:seq_after, :seq_before, 'no scan of the table');
select cmp_ok(:visited_after - :visited_before, '<=', 60, 'no visit to the 500 that live, nor to the 290 for which there is no room');

select * from finish();
rollback;
