begin;
-- As in idem_begin/.
\ir ../_record.psql
select plan(3);

create temporary view scans as
select seq_scan, idx_scan from pg_stat_xact_user_tables where relid = 'pgidem.settings'::regclass;
select seq_scan as seq_before, idx_scan as idx_before from scans \gset
select count(*) as claims
from generate_series(1, 10) n
where (pgidem.idem_claim(:'user_id', n::text, :'fingerprint')).outcome = 'claimed' \gset
select seq_scan as seq_after, idx_scan as idx_after from scans \gset

select is(:claims, 10, 'ten claims');
select ok(:idx_after >= :idx_before + 10, 'use the index');
select is(:seq_after, :seq_before, 'and never scan the table');

select * from finish();
rollback;
