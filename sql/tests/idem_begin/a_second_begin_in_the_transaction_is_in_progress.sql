begin;
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
select results_eq(
  'select outcome, response_status, response_body, one_time_secret, retry_after from ' || :'begin_key',
  $$values ('in_progress', null::integer, null, false, 1)$$,
  'in_progress, to be repeated after a second'
);
select is((:begin_other_request).outcome, 'in_progress', 'another request as well');

select * from finish();
rollback;
