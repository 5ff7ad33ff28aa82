begin;
\ir ../_setup.psql
select plan(3);

\ir ../_empty_table.psql
select seq_scan as seq_before, idx_scan as idx_before from scans \gset
select count(*) as stored
from keys
where (pgidem.idem_save_final(:'principal', key, 'pay', :'fingerprint', 404, '{}')).outcome = 'stored' \gset
select seq_scan as seq_after, idx_scan as idx_after from scans \gset
rollback to savepoint empty_table;

select is(:stored, 10, 'ten calls');
select ok(:idx_after >= :idx_before + 20, 'use the index, to look and to complete');
select is(:seq_after, :seq_before, 'and never scan the table');

select * from finish();
rollback;
