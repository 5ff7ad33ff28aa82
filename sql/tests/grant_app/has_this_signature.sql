begin;
select plan(1);

select is(pg_get_function_arguments('pgidem.grant_app'::regproc), 'p_role name, p_tables boolean DEFAULT false', 'parameters');

select * from finish();
rollback;
