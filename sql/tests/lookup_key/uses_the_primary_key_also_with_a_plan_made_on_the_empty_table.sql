begin;
\ir ../_setup.psql
select plan(3);

\ir ../_empty_table.psql
select seq_scan as seq_before, idx_scan as idx_before from scans \gset
select count(*) as looks from keys left join lateral pgidem.lookup_key(:'principal', key::text) l on true \gset
select seq_scan as seq_after, idx_scan as idx_after from scans \gset
rollback to savepoint empty_table;

select is(:looks, 10, 'ten looks');
select ok(:idx_after >= :idx_before + 10, 'use the index');
select is(:seq_after, :seq_before, 'and never scan the table');

select * from finish();
rollback;
