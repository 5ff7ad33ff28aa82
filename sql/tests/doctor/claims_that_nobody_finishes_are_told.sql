begin;
\ir ../_record.psql
\ir ../_clock.psql
\ir ../_foreign_rows.psql
\ir ../_doctor.psql
select plan(8);

set local test.now = '2000-03-02 12:00+00';
delete from pgidem.idempotency_keys;
delete from pgidem.idempotency_record;
select is(pg_temp.detail('stuck_claims'), 'no claim was committed without an answer', 'none');
select is(pg_temp.detail('abandoned_leases'), 'leases that are running: 0; none ended without an answer', 'none');

insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, created_at, expires_at)
values (gen_random_uuid(), gen_random_uuid(), 'pay', :'fingerprint', '2000-03-02 11:00+00', '2000-03-03 11:00+00');
select is(pg_temp.status('stuck_claims'), 'warn', 'a claim without an answer');
select alike(pg_temp.detail('stuck_claims'), 'claims committed without idem_complete: 1; %', 'it says how many');

savepoint another_transaction;
select (:claim_key).outcome as claimed \gset
release savepoint another_transaction;
select is(pg_temp.detail('abandoned_leases'), 'leases that are running: 1; none ended without an answer', 'a lease that runs');
set local test.now = '2000-03-02 12:10+00';
select is(pg_temp.status('abandoned_leases'), 'warn', 'its time is over');
select alike(pg_temp.detail('abandoned_leases'), 'leases that ended without an answer: 1; %', 'it says how many');
savepoint another_transaction;
select (:claim_key).outcome as claimed \gset
release savepoint another_transaction;
select is(pg_temp.status('abandoned_leases'), 'ok', 'a retry took it over');

select * from finish();
rollback;
