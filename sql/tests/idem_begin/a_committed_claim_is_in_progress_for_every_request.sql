begin;
-- A caller committed without idem_complete (M8): the key is blocked, and nobody is told that it was reused.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(3);

savepoint another_transaction;
insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, expires_at)
values (:'principal', :'key', 'pay', :'fingerprint', clock_timestamp() + interval '1 hour');
release savepoint another_transaction;

select results_eq(
  'select outcome, retry_after, expires_at > created_at from ' || :'begin_key',
  $$values ('in_progress', 1, true)$$,
  'the same request'
);
select is((:begin_other_request).outcome, 'in_progress', 'another request');
select is((select state from pgidem.idempotency_keys where :this_key), 'in_progress', 'the row stays as it is');

select * from finish();
rollback;
