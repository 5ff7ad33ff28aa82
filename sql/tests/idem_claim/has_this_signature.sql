begin;
select plan(2);

select is(
  pg_get_function_arguments('pgidem.idem_claim'::regproc),
  'p_user_id text, p_key text, p_request_sha256 bytea, p_lease interval DEFAULT NULL::interval, p_retention interval DEFAULT NULL::interval, p_lock_timeout interval DEFAULT NULL::interval, p_attempt uuid DEFAULT NULL::uuid',
  'parameters'
);
select is(pg_get_function_result('pgidem.idem_claim'::regproc), 'pgidem.claim_result', 'result');

select * from finish();
rollback;
