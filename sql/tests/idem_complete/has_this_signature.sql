begin;
select plan(2);

select is(
  pg_get_function_arguments('pgidem.idem_complete'::regproc),
  'p_principal_id uuid, p_key uuid, p_status integer, p_body jsonb, p_one_time_secret boolean DEFAULT false',
  'parameters'
);
select is(pg_get_function_result('pgidem.idem_complete'::regproc), 'text', 'result');

select * from finish();
rollback;
