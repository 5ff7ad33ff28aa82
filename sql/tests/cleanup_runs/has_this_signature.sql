begin;
select plan(2);

select is(pg_get_function_arguments('pgidem.cleanup_runs'::regproc), 'p_limit integer DEFAULT 20', 'parameters');
select is(pg_get_function_result('pgidem.cleanup_runs'::regproc), 'SETOF pgidem.cleanup_run', 'result');

select * from finish();
rollback;
