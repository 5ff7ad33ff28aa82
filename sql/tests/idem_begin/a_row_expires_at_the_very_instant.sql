begin;
-- Case 23: expires_at equal to now is expired.
\ir ../_setup.psql
\ir ../_clock.psql
\ir ../_foreign_rows.psql
select plan(2);

savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{}', null,
  '2026-03-01 12:00+00', '2026-03-02 12:00+00');
release savepoint another_transaction;

set local test.now = '2026-03-02 11:59:59.999999+00';
select is((:begin_key).outcome, 'replay', 'one microsecond before');
set local test.now = '2026-03-02 12:00+00';
select is((:begin_key).outcome, 'claimed', 'at expires_at');

select * from finish();
rollback;
