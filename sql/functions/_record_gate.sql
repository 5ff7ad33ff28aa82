/*
The hash is a contract between versions, as in _gate. Never change it.
*/
create or replace function pgidem._record_gate(
  p_user_id text,
  p_key text
)
returns bigint
language sql
immutable
parallel safe
security invoker
return pg_catalog.hashtextextended(
  p_key collate pg_catalog."C",
  pg_catalog.hashtextextended(p_user_id collate pg_catalog."C", 0)
);

comment on function pgidem._record_gate(text, text) is
  'The number of the advisory lock at which the callers of one key in idempotency_record queue up, as _gate is for idempotency_keys.';

revoke all on function pgidem._record_gate(text, text) from public;
