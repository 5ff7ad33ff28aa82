begin;
\ir ../_setup.psql
select plan(3);

\ir ../_empty_table.psql
select seq_scan as seq_before, idx_scan as idx_before from scans \gset
select count(*) as claims
from keys
where (pgidem.idem_begin(:'principal', key, 'pay', :'fingerprint')).outcome = 'claimed' \gset
select seq_scan as seq_after, idx_scan as idx_after from scans \gset
rollback to savepoint empty_table;

select is(:claims, 10, 'ten calls');
select ok(:idx_after >= :idx_before + 10, 'use the index');
select is(:seq_after, :seq_before, 'and never scan the table');

select * from finish();
rollback;
