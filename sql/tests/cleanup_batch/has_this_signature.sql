begin;
select plan(2);

select is(pg_get_function_arguments('pgidem.cleanup_batch'::regproc), 'p_limit integer DEFAULT NULL::integer', 'parameters');
select is(pg_get_function_result('pgidem.cleanup_batch'::regproc), 'integer', 'result');

select * from finish();
rollback;
