begin;
\ir ../_setup.psql
select plan(4);

select :begin_key \gset
select pgidem.idem_complete(:'principal', :'key', 201, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}', true) \gset
select results_eq(
  format('select one_time_secret, response_body, resource_id from pgidem.lookup_key(%L, %L, true)', :'principal', :'key'),
  $$values (true, '{"one_time_secret": true}', '0192f0c1-2345-7abc-8def-0123456789ab'::uuid)$$,
  'the mark alone is stored'
);

select gen_random_uuid() as other_key \gset
select pgidem.idem_save_final(:'principal', :'other_key', 'pay', :'fingerprint', 404, '{"one_time_secret": true}') \gset
select is(one_time_secret, false, 'a 4xx with such a body is a plain answer') from pgidem.lookup_key(:'principal', :'other_key');
update pgidem.idempotency_keys set response_body = null, response_status = 204 where :this_key;
select is(one_time_secret, false, 'no body') from pgidem.lookup_key(:'principal', :'key');
update pgidem.idempotency_keys set response_body = '{"one_time_secret": false}', response_status = 200 where :this_key;
select is(one_time_secret, false, 'another body') from pgidem.lookup_key(:'principal', :'key');

select * from finish();
rollback;
