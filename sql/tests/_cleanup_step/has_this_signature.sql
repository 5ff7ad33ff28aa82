begin;
select plan(1);

select is(
  pg_get_function_arguments('pgidem._cleanup_step'::regproc),
  'p_limit integer, INOUT p_run bigint, OUT p_deleted integer, OUT p_more boolean',
  'parameters and result'
);

select * from finish();
rollback;
