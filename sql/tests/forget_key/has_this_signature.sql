begin;
select plan(2);

select is(
  pg_get_function_arguments('pgidem.forget_key'::regproc),
  'p_user_id text, p_key text, p_force boolean DEFAULT false',
  'parameters'
);
select is(pg_get_function_result('pgidem.forget_key'::regproc), 'boolean', 'result');

select * from finish();
rollback;
