begin;
\ir ../_record.psql
select plan(3);

\ir ../_empty_record_table.psql
select seq_scan as seq_before, idx_scan as idx_before from scans \gset
select count(*) as looks from keys left join lateral pgidem.lookup_key(:'user_id', key) l on true \gset
select count(*) as forgotten from keys where not pgidem.forget_key(:'user_id', key) \gset
select seq_scan as seq_after, idx_scan as idx_after from scans \gset
rollback to savepoint empty_table;

select is(concat_ws(' ', :looks, :forgotten), '10 10', 'ten looks, and forget_key');
select ok(:idx_after >= :idx_before + 30, 'use the index');
select is(:seq_after, :seq_before, 'and never scan the table');

select * from finish();
rollback;
