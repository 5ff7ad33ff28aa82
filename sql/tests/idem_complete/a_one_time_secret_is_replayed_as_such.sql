begin;
-- Case 39.
\ir ../_setup.psql
select plan(4);

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

select gen_random_uuid() as bare \gset
select pgidem.idem_begin(:'principal', :'bare', 'pay', :'fingerprint') \gset
select is(pgidem.idem_complete(:'principal', :'bare', 200, null, true), '{"one_time_secret": true}', 'stored without a body');
select results_eq(
  format('select outcome, resource_id, one_time_secret from pgidem.idem_begin(%L, %L, %L, %L)', :'principal', :'bare', 'pay', :'fingerprint'),
  $$values ('replay', null::uuid, true)$$,
  'and replayed as such too'
);

select * from finish();
rollback;
