/*
Collation "C": the caller's text may come in a nondeterministic one, which knows no regular expressions.
*/
create or replace function pgidem._uuid(
  p_text text
)
returns uuid
language sql
immutable
parallel safe
security invoker
return case
  when p_text collate pg_catalog."C" operator(pg_catalog.~) '^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$' then p_text::pg_catalog.uuid
end;

comment on function pgidem._uuid(text) is 'A text of 36 characters as a UUID, null when it is none.';

revoke all on function pgidem._uuid(text) from public;
