begin;
-- Case 23: the rollback of the operation brings an expired row back.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(4);

savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'key', 'refund', :'other_fingerprint', 'completed', 200, '{"amount": 2}', gen_random_uuid(),
  clock_timestamp() - interval '2 hours', clock_timestamp() - interval '1 hour');
release savepoint another_transaction;

create temporary table result as select outcome, response_status, response_body from :save_final_key;
select results_eq('table result', $$values ('stored', 404, '{"code": "not_found"}')$$, 'stored');
select is((select count(*) from pgidem.idempotency_keys where :this_key), 1::bigint, 'in its place');
select results_eq(
  'select action, request_sha256, response_status, resource_id from pgidem.idempotency_keys where ' || :'this_key',
  format($$values ('pay', %L::bytea, 404::smallint, null::uuid)$$, :'fingerprint'),
  'nothing of the old one is left'
);
select is((:begin_key).response_status, 404, 'the next request is a replay');

select * from finish();
rollback;
