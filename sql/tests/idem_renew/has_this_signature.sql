begin;
select plan(2);

select is(pg_get_function_arguments('pgidem.idem_renew'::regproc), 'p_user_id text, p_key text, p_token bigint, p_lease interval DEFAULT NULL::interval', 'parameters');
select is(pg_get_function_result('pgidem.idem_renew'::regproc), 'boolean', 'result');

select * from finish();
rollback;
