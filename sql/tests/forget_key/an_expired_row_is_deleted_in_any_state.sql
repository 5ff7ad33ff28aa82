begin;
\ir ../_expired_keys.psql
select plan(4);

-- Of the keys that expire at 12:03, the very instant, and later.
savepoint another_transaction;
update pgidem.idempotency_keys set state = 'in_progress', response_status = null, response_body = null where principal_id = :'principal';
release savepoint another_transaction;
select key as expiring from pgidem.idempotency_keys where principal_id = :'principal' and expires_at = '2000-03-02 12:03+00' \gset
select key as living from pgidem.idempotency_keys where principal_id = :'principal' and expires_at = '2000-03-02 12:04+00' \gset
\ir ../_foreign_rows.psql

select is(pgidem.forget_key(:'principal', :'expiring'), true, 'expired: nobody works on it');
select throws_ok(format('select pgidem.forget_key(%L, %L)', :'principal', :'living'), 'ID002', null, 'not yet expired');
set local test.now = '2000-03-02 12:04+00';
select is(pgidem.forget_key(:'principal', :'living'), true, 'a minute later');
select is(pg_temp.left_over(:'principal'), '01 02 05', 'the others are left to the cleanup');

select * from finish();
rollback;
