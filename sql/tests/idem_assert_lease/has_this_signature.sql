begin;
select plan(2);

select is(pg_get_function_arguments('pgidem.idem_assert_lease'::regproc), 'p_user_id text, p_key text, p_token bigint', 'parameters');
select is(pg_get_function_result('pgidem.idem_assert_lease'::regproc), 'void', 'result');

select * from finish();
rollback;
