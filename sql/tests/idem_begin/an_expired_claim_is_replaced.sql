begin;
-- L8: a caller that committed without idem_complete blocks the key no longer than the TTL.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(2);

savepoint another_transaction;
insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, expires_at)
values (:'principal', :'key', 'pay', :'other_fingerprint', clock_timestamp() - interval '1 second');
release savepoint another_transaction;

select is((:begin_key).outcome, 'claimed', 'claimed by another request');
select is((select request_sha256 from pgidem.idempotency_keys where :this_key), :'fingerprint'::bytea, 'whose row it is now');

select * from finish();
rollback;
