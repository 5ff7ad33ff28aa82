begin;
select plan(1);

select is(pg_get_function_arguments('pgidem.grant_operator'::regproc), 'p_role name', 'parameters');

select * from finish();
rollback;
