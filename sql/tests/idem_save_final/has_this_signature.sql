begin;
select plan(2);

select is(
  pg_get_function_arguments('pgidem.idem_save_final'::regproc),
  'p_principal_id uuid, p_key uuid, p_action text, p_request_sha256 bytea, p_status integer, p_body jsonb, p_ttl interval DEFAULT NULL::interval, p_lock_timeout interval DEFAULT NULL::interval',
  'parameters'
);
select is(pg_get_function_result('pgidem.idem_save_final'::regproc), 'pgidem.begin_result', 'result');

select * from finish();
rollback;
