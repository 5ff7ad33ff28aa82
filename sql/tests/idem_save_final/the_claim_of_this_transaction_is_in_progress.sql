begin;
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
select results_eq(
  'select outcome, response_status, response_body, retry_after from ' || :'save_final_key',
  $$values ('in_progress', null::integer, null, 1)$$,
  'in_progress: the operation was not rolled back'
);
select is((select state from pgidem.idempotency_keys where :this_key), 'in_progress', 'the claim stays');

select * from finish();
rollback;
