begin;
\ir ../_doctor.psql
select plan(7);

select is(pg_temp.status('wraparound'), 'ok', 'as installed');
-- What a table looks like that no vacuum could freeze for so many transactions.
prepare age(bigint) as
update pg_class set relfrozenxid = ((pg_current_xact_id()::text::bigint - $1 + 4294967296) % 4294967296)::text::xid
where oid = 'pgidem.idempotency_record'::regclass;
select 2 * current_setting('autovacuum_freeze_max_age')::bigint as twice \gset
execute age(:twice - 10000);
select is(pg_temp.status('wraparound'), 'ok', 'autovacuum can still come');
execute age(:twice + 10000);
select is(pg_temp.status('wraparound'), 'warn', 'it should have come long ago');
execute age(1600010000);
select is(pg_temp.status('wraparound'), 'fail', 'the server will stop soon');
select alike(pg_temp.detail('wraparound'), 'the oldest row is 1600 million transactions old, %', 'it says how old');
execute age(0);
update pg_class set relminmxid = ((mxid_age('1') + 1 - 2 * current_setting('autovacuum_multixact_freeze_max_age')::bigint - 10000 + 4294967296) % 4294967296)::text::xid
where oid = 'pgidem.idempotency_record'::regclass;
select is(pg_temp.status('wraparound'), 'warn', 'multixacts run out alike');
update pg_class set relfrozenxid = ((pg_current_xact_id()::text::bigint - 1600010000 + 4294967296) % 4294967296)::text::xid
where oid = (select reltoastrelid from pg_class where oid = 'pgidem.idempotency_keys'::regclass);
select is(pg_temp.status('wraparound'), 'fail', 'and long bodies have a table of their own');

select * from finish();
rollback;
