begin;
\ir ../_record.psql
\ir ../_alone.psql
select plan(3);

\ir ../_empty_record_table.psql
select seq_scan as seq_before, idx_scan as idx_before from scans \gset
create temporary table claims as
select key, (pgidem.idem_claim(:'user_id', key, :'fingerprint')).token from keys;
select count(*) filter (where pgidem.idem_renew(:'user_id', key, token, '1 hour')) as renewed from claims \gset
select count(pgidem.idem_assert_lease(:'user_id', key, token)) as asserted from claims \gset
select count(*) filter (where (pgidem.idem_finish(:'user_id', key, token - 1, 200, null, null, null, null)).outcome = 'in_progress') as stale from claims \gset
select count(*) filter (where (pgidem.idem_finish(:'user_id', key, token, 200, null, null, null, null)).outcome = 'stored') as stored from claims \gset
select count(*) filter (where not pgidem.idem_release(:'user_id', key, token)) as kept from claims \gset
set local enable_seqscan = off;
update pgidem.idempotency_record set live_until = '-infinity' where user_id = :'user_id';
set local enable_seqscan = on;
create or replace function pgidem._mine(p_xmin xid) returns boolean language sql stable return false;
select count(*) filter (where (pgidem.idem_claim(:'user_id', key, :'fingerprint')).outcome = 'claimed') as taken_over from claims \gset
select seq_scan as seq_after, idx_scan as idx_after from scans \gset
rollback to savepoint empty_table;

select is(concat_ws(' ', :renewed, :asserted, :stale, :stored, :kept, :taken_over), '10 10 10 10 10 10', 'ten calls of each function');
select ok(:idx_after >= :idx_before + 100, 'use the index');
select is(:seq_after, :seq_before, 'and never scan the table');

select * from finish();
rollback;
