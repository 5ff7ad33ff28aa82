begin;
\ir ../_setup.psql
select plan(2);

select results_eq(
  'select outcome, response_status, response_body, one_time_secret, retry_after from ' || :'save_final_key',
  $$values ('stored', 404, '{"code": "not_found"}', false, null::integer)$$,
  'stored, with the text to send'
);
select results_eq(
  'select action, request_sha256, state, response_status, response_body from pgidem.idempotency_keys where ' || :'this_key',
  format($$values ('pay', %L::bytea, 'completed', 404::smallint, '{"code": "not_found"}'::jsonb)$$, :'fingerprint'),
  'the row is completed'
);

select * from finish();
rollback;
