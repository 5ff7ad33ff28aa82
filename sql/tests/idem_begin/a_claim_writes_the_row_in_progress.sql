begin;
\ir ../_setup.psql
select plan(2);

select created_at, expires_at from :begin_key \gset
select results_eq(
  'select action, request_sha256, state, response_status, response_body, resource_id from pgidem.idempotency_keys where ' || :'this_key',
  format($$values ('pay', %L::bytea, 'in_progress', null::smallint, null::jsonb, null::uuid)$$, :'fingerprint'),
  'action, fingerprint and state, no response'
);
select results_eq(
  'select created_at, expires_at from pgidem.idempotency_keys where ' || :'this_key',
  format('values (%L::timestamptz, %L::timestamptz)', :'created_at', :'expires_at'),
  'the instants that the caller was told'
);

select * from finish();
rollback;
