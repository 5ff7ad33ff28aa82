begin;
-- Case 74.
\ir ../_expired_records.psql
select plan(2);

select pgidem.cleanup_batch(1) \gset
create temp table before on commit drop as
select pg_stat_get_xact_numscans('pgidem.idempotency_record'::regclass) as seq,
       pg_stat_get_xact_numscans('pgidem.idempotency_record_expires_at_idx'::regclass) as idx;
select pgidem.cleanup_batch(1) \gset
select is(pg_stat_get_xact_numscans('pgidem.idempotency_record'::regclass), b.seq, 'no sequential scan') from before b;
select ok(pg_stat_get_xact_numscans('pgidem.idempotency_record_expires_at_idx'::regclass) > b.idx, 'the index on expires_at') from before b;

select * from finish();
rollback;
