begin;
-- C3.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(3);

prepare save_other as
select outcome, response_status, response_body, retry_after
from pgidem.idem_save_final(:'principal', :'key', 'pay', :'other_fingerprint', 404, '{"code": "not_found"}');

savepoint another_transaction;
insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, expires_at)
values (:'principal', :'key', 'pay', :'fingerprint', clock_timestamp() + interval '1 hour');
release savepoint another_transaction;

select results_eq(
  'select outcome, response_status, response_body, retry_after from ' || :'save_final_key',
  $$values ('in_progress', null::integer, null, 1)$$,
  'the same request'
);
select results_eq('save_other', $$values ('in_progress', null::integer, null, 1)$$, 'another request');
select is((select state from pgidem.idempotency_keys where :this_key), 'in_progress', 'the row stays');

select * from finish();
rollback;
