begin;
-- Case 74.
\ir ../_setup.psql
select plan(4);

\ir ../_empty_table.psql
create temporary view visits as
select seq_scan, coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) as visited from pg_stat_xact_user_tables where relid = 'pgidem.idempotency_keys'::regclass;
select count(*) from pgidem.stats() \gset
-- Four rows on a page, in twice the pages that it looks at.
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), repeat('x', 1900), :'fingerprint', 'completed', 200, null, null, now() - interval '2 days',
  now() + n * interval '1 minute'
from generate_series(-4, 8192) n;
select pg_relation_size('pgidem.idempotency_keys') / current_setting('block_size')::integer as pages \gset
select seq_scan as seq_before, visited as visited_before from visits \gset
select value as expired from pgidem.stats() where metric = 'expired' and table_name = 'idempotency_keys' \gset
select seq_scan as seq_after, visited as visited_after from visits \gset
rollback to savepoint empty_table;

select cmp_ok(:pages, '>=', 2048, 'a table of this size');
select is(:expired, 5, 'what has expired');
select is(:seq_after, :seq_before, 'no scan of the table');
select cmp_ok(:visited_after - :visited_before, '<=', 6144, 'half of the 8192 that live are visited, more or less');

select * from finish();
rollback;
