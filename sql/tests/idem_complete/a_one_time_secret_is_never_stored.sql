begin;
-- Case 39.
\ir ../_setup.psql
select plan(3);

select :begin_key \gset
select is(
  pgidem.idem_complete(:'principal', :'key', 201, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab", "token": "tok_SECRET_7f3a"}', true),
  '{"one_time_secret": true}',
  'the marker is what is stored'
);
select unalike(k::text, '%SECRET%', 'no part of the secret stands in the row') from pgidem.idempotency_keys k where :this_key;
select results_eq(
  'select state, response_status, response_body, resource_id from pgidem.idempotency_keys where ' || :'this_key',
  $$values ('completed', 201::smallint, '{"one_time_secret": true}'::jsonb, '0192f0c1-2345-7abc-8def-0123456789ab'::uuid)$$,
  'status and resource are kept'
);

select * from finish();
rollback;
