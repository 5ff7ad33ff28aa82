begin;
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
create temporary table before as select * from pgidem.idempotency_keys where :this_key;
select pgidem.idem_complete(:'principal', :'key', 202, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}') \gset
select results_eq(
  'select state, response_status, response_body, resource_id from pgidem.idempotency_keys where ' || :'this_key',
  $$values ('completed', 202::smallint, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}'::jsonb, '0192f0c1-2345-7abc-8def-0123456789ab'::uuid)$$,
  'state, status, body and resource'
);
select results_eq(
  'select action, request_sha256, created_at, expires_at from pgidem.idempotency_keys where ' || :'this_key',
  'select action, request_sha256, created_at, expires_at from before',
  'the rest as the claim wrote it'
);

select * from finish();
rollback;
