begin;
select plan(2);

select is(
  pg_get_function_arguments('pgidem.lookup_key'::regproc),
  'p_user_id text, p_key text, p_with_body boolean DEFAULT false',
  'parameters'
);
select is(pg_get_function_result('pgidem.lookup_key'::regproc), 'SETOF pgidem.lookup_result', 'result');

select * from finish();
rollback;
