begin;
\ir ../_setup.psql
select plan(2);

select created_at, expires_at from :begin_key \gset
select pgidem.idem_complete(:'principal', :'key', 201, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}') \gset
select results_eq(
  'select outcome, response_status, response_body, resource_id, one_time_secret, retry_after from ' || :'begin_key',
  $$values ('replay', 201, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}', '0192f0c1-2345-7abc-8def-0123456789ab'::uuid, false, null::integer)$$,
  'the stored response'
);
select results_eq(
  'select created_at, expires_at from ' || :'begin_key',
  format('values (%L::timestamptz, %L::timestamptz)', :'created_at', :'expires_at'),
  'of the time of the claim'
);

select * from finish();
rollback;
