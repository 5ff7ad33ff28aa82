/*
A regular expression that counts to 36 would build a state for each character, anew at each call. Collation "C", so that
no locale has a say.
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
  when p_text collate pg_catalog."C" operator(pg_catalog.~~) '________-____-____-____-____________'
    and pg_catalog.length(pg_catalog.replace(p_text collate pg_catalog."C", '-', '')) operator(pg_catalog.=) 32
    and p_text collate pg_catalog."C" operator(pg_catalog.!~) '[^0-9a-fA-F-]'
  then p_text::pg_catalog.uuid
end;

comment on function pgidem._uuid(text) is 'A text of 36 characters as a UUID, null when it is none.';

revoke all on function pgidem._uuid(text) from public;
