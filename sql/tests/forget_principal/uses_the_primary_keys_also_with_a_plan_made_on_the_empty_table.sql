begin;
\ir ../_setup.psql
select plan(4);

\ir ../_empty_table.psql
select seq_scan as seq_before from scans \gset
select pg_stat_get_xact_numscans('pgidem.idempotency_record'::regclass) as records_before \gset
select sum(pgidem.forget_principal(key::text)) as forgotten from keys \gset
select idx_scan as idx_after, seq_scan as seq_after from scans \gset
select pg_stat_get_xact_numscans('pgidem.idempotency_record'::regclass) as records_after \gset
rollback to savepoint empty_table;

select is(:forgotten, 0, 'of ten principals');
select ok(:idx_after >= 20, 'the delete and the look after it use the index');
select is(:seq_after, :seq_before, 'and never scan the table');
select is(:records_after, :records_before, 'nor that of the leases');

select * from finish();
rollback;
