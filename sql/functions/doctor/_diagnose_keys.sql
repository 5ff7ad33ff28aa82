create or replace function pgidem._diagnose_keys()
returns setof pgidem.diagnosis
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  c_pages constant integer := 32768; -- 256 MB of pages of the usual size
  v_claims record;
  v_about text;
begin
  v_claims := pgidem._unanswered('pgidem.idempotency_keys'::regclass, c_pages);
  v_about := case when v_claims.p_is_estimate then 'about ' else '' end;
  return next pgidem._finding('stuck_claims', case when v_claims.p_abandoned > 0 then 'warn' else 'ok' end,
    case
      when v_claims.p_abandoned > 0 then format('claims committed without idem_complete: %s%s; their keys get 409 until they expire', v_about, v_claims.p_abandoned)
      else 'no claim was committed without an answer'
    end,
    'Find the caller that is in autocommit or leaves out idem_complete: select action, count(*) from pgidem.idempotency_keys where state = ''in_progress'' group by 1. pgidem.forget_key with p_force frees a key');

  v_claims := pgidem._unanswered('pgidem.idempotency_record'::regclass, c_pages);
  v_about := case when v_claims.p_is_estimate then 'about ' else '' end;
  return next pgidem._finding('abandoned_leases', case when v_claims.p_abandoned > 0 then 'warn' else 'ok' end,
    case
      when v_claims.p_abandoned > 0 then format('leases that ended without an answer: %s%s; whether their effects happened, only the other side knows', v_about, v_claims.p_abandoned)
      else format('leases that are running: %s%s; none ended without an answer', v_about, v_claims.p_running)
    end,
    'Ask the other side by the DownstreamKey: select user_id, idem_key, created_at from pgidem.idempotency_record where state = ''in_progress'' and live_until < now(). A retry runs such an operation again; without one the cleanup removes the record');
end
$$;

comment on function pgidem._diagnose_keys() is 'The checks of doctor that count claims which nobody finishes.';

revoke all on function pgidem._diagnose_keys() from public;
