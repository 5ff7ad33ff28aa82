begin;
-- Case 39.
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
select pgidem.idem_complete(:'principal', :'key', 201, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}', p_one_time_secret => true) \gset
select results_eq(
  'select outcome, response_status, response_body, resource_id, one_time_secret from ' || :'begin_key',
  $$values ('replay', 201, '{"one_time_secret": true}', '0192f0c1-2345-7abc-8def-0123456789ab'::uuid, true)$$,
  'the repeat is told'
);
select results_eq(
  'select outcome, response_body, one_time_secret from ' || :'begin_other_request',
  $$values ('reused', null, false)$$,
  'another request is not'
);

select * from finish();
rollback;
