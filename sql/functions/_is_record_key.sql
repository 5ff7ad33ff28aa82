/*
What the constraints of the table demand, asked before a wait or a write, so that the error has no text of the caller. A
single expression, so that it is inlined into the callers. Collation "C": see _uuid.
*/
create or replace function pgidem._is_record_key(
  p_user_id text,
  p_key text
)
returns boolean
language sql
immutable
parallel safe
security invoker
return coalesce(
  pg_catalog.char_length(p_user_id) operator(pg_catalog.>=) 1 and pg_catalog.char_length(p_user_id) operator(pg_catalog.<=) 255
    and p_user_id collate pg_catalog."C" operator(pg_catalog.~) '[^ ]'
    and p_user_id collate pg_catalog."C" operator(pg_catalog.!~) E'[\\u0001-\\u001f\\u007f-\\u009f]'
    and pg_catalog.char_length(p_key) operator(pg_catalog.>=) 1 and pg_catalog.char_length(p_key) operator(pg_catalog.<=) 255
    and p_key collate pg_catalog."C" operator(pg_catalog.~) '^[!-~]([ -~]*[!-~])?$',
  false
);

comment on function pgidem._is_record_key(text, text) is 'True when idempotency_record can hold the user and the key.';

revoke all on function pgidem._is_record_key(text, text) from public;
