begin;
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(4);

\ir ../_empty_table.psql
-- Makes the plan while there is no row.
select pg_temp.diagnose('select ' || :'complete_key') ->> 'code' as first_call \gset
select count(pgidem.idem_begin(:'principal', key, 'pay', :'fingerprint')) from keys \gset
select seq_scan as seq_before, idx_scan as idx_before from scans \gset
select count(*) as completions
from keys
where pgidem.idem_complete(:'principal', key, 200, '{}') = '{}' \gset
select seq_scan as seq_after, idx_scan as idx_after from scans \gset
rollback to savepoint empty_table;

select is(:'first_call'::text, 'ID001', 'a call on the empty table');
select is(:completions, 10, 'ten calls on its plan');
select ok(:idx_after >= :idx_before + 10, 'use the index');
select is(:seq_after, :seq_before, 'and never scan the table');

select * from finish();
rollback;
