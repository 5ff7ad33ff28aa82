begin;
select plan(1);

select is(pg_get_function_arguments('pgidem.register_principal'::regproc), 'p_id uuid', 'parameters');

select * from finish();
rollback;
