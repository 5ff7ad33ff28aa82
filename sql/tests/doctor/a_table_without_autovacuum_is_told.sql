begin;
\ir ../_doctor.psql
select plan(4);

select is(pg_temp.status('autovacuum'), 'ok', 'as installed');
alter table pgidem.idempotency_keys set (autovacuum_enabled = off);
select is(pg_temp.status('autovacuum'), 'warn', 'off for one table');
select alike(pg_temp.detail('autovacuum'), 'autovacuum is off for pgidem.idempotency_keys: %', 'which is named');
select is(pg_temp.follow('autovacuum'), 'ok', 'the mend helps');

select * from finish();
rollback;
