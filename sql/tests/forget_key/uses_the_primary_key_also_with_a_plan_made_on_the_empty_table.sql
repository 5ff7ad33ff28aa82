begin;
\ir ../_setup.psql
select plan(3);

\ir ../_empty_table.psql
select seq_scan as seq_before, idx_scan as idx_before from scans \gset
select count(*) as forgotten from keys where not pgidem.forget_key(:'principal', key::text) \gset
select seq_scan as seq_after, idx_scan as idx_after from scans \gset
rollback to savepoint empty_table;

select is(:forgotten, 10, 'ten keys');
select ok(:idx_after >= :idx_before + 20, 'the delete and the look after it use the index');
select is(:seq_after, :seq_before, 'and never scan the table');

select * from finish();
rollback;
