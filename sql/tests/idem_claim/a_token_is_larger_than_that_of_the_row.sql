begin;
-- C1: the clock may have been ahead, say on the machine that failed over to this one.
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(1);

savepoint another_transaction;
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
values (:'user_id', :'key', :'fingerprint', 9000000000000000, 1, now() - interval '1 hour', '1 day', now(), now());
release savepoint another_transaction;
select is(token, 9000000000000001, 'one larger than a token that is ahead of the clock') from :claim_key;

select * from finish();
rollback;
