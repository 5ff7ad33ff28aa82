begin;
select plan(2);

select is(pg_get_function_arguments('pgidem.forget_principal'::regproc), 'p_user_id text', 'parameters');
select is(pg_get_function_result('pgidem.forget_principal'::regproc), 'bigint', 'result');

select * from finish();
rollback;
