begin;
\ir ../_setup.psql
select plan(1);

select :begin_key \gset
select :complete_key \gset
select results_eq(
  'select outcome, response_status, response_body, resource_id, one_time_secret, retry_after from ' || :'begin_other_request',
  $$values ('reused', null::integer, null, null::uuid, false, null::integer)$$,
  'reused, without the response of the first request'
);

select * from finish();
rollback;
