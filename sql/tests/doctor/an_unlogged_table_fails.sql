begin;
\ir ../_doctor.psql
select plan(3);

select is(pg_temp.status('logged_tables'), 'ok', 'as installed');
savepoint unlogged;
alter table pgidem.idempotency_record set unlogged;
select pg_temp.status('logged_tables') as unlogged, pg_temp.follow('logged_tables') as mended \gset
rollback to savepoint unlogged;
select is(:'unlogged'::text, 'fail', 'unlogged');
select is(:'mended'::text, 'ok', 'the mend helps');

select * from finish();
rollback;
