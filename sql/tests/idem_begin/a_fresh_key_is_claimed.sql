begin;
\ir ../_setup.psql
select plan(1);

select results_eq(
  'select outcome, response_status, response_body, resource_id, one_time_secret, retry_after from ' || :'begin_key',
  $$values ('claimed', null::integer, null, null::uuid, false, null::integer)$$,
  'claimed, and nothing to answer with'
);

select * from finish();
rollback;
