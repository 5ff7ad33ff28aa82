begin;
-- Case 23: expired is absent, cleaned or not.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(5);

savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'key', 'refund', :'other_fingerprint', 'completed', 200, '{"amount": 2}', gen_random_uuid(),
  clock_timestamp() - interval '2 hours', clock_timestamp() - interval '1 hour');
release savepoint another_transaction;

select throws_ok(
  format('select pgidem.idem_begin(%L, %L, %L, %L, p_lock_timeout => %L)', :'principal', :'key', 'pay', :'fingerprint', '0'),
  '22023', 'invalid duration', 'a senseless wait is refused first'
);
select is((:begin_key).outcome, 'claimed', 'the key is free');
select is((select count(*) from pgidem.idempotency_keys where :this_key), 1::bigint, 'one row');
select results_eq(
  'select action, request_sha256, state, response_status, response_body, resource_id from pgidem.idempotency_keys where ' || :'this_key',
  format($$values ('pay', %L::bytea, 'in_progress', null::smallint, null::jsonb, null::uuid)$$, :'fingerprint'),
  'nothing of the old one is left'
);
select ok(created_at > now() and expires_at > now() + interval '23 hours', 'a new life')
from pgidem.idempotency_keys where :this_key;

select * from finish();
rollback;
