begin;
select plan(2);

select is(
  pg_get_function_arguments('pgidem.idem_finish'::regproc),
  'p_user_id text, p_key text, p_token bigint, p_status integer, p_content_type text, p_location text, p_etag text, p_body bytea, p_one_time_secret boolean DEFAULT false, p_require boolean DEFAULT false',
  'parameters'
);
select is(pg_get_function_result('pgidem.idem_finish'::regproc), 'pgidem.claim_result', 'result');

select * from finish();
rollback;
