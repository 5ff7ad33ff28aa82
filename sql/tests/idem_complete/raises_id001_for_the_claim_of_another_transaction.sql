begin;
-- C2: somebody else committed the same key without completing it, while ours was undone by a savepoint.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(2);

savepoint another_transaction;
insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, expires_at)
values (:'principal', :'key', 'pay', :'fingerprint', clock_timestamp() + interval '1 hour');
release savepoint another_transaction;

select throws_ok('select ' || :'complete_key', 'ID001', null, 'the row is in progress, but not ours');
select is((select state from pgidem.idempotency_keys where :this_key), 'in_progress', 'and stays in progress');

select * from finish();
rollback;
