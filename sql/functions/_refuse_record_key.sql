create or replace function pgidem._refuse_record_key(
  p_user_id text,
  p_key text
)
returns void
language plpgsql
stable
parallel safe
security invoker
as $$
begin
  raise exception using
    errcode = 'invalid_parameter_value',
    message = 'invalid argument',
    detail = format('p_user_id has %s characters, p_key has %s; or one of them holds a character that is not allowed.',
      coalesce(char_length(p_user_id), 0), coalesce(char_length(p_key), 0)),
    hint = 'Give p_user_id 1 to 255 characters, not all blank and none of them a control character, and p_key 1 to 255 characters from 0x21 to 0x7E, with spaces inside.';
end
$$;

comment on function pgidem._refuse_record_key(text, text) is 'Raises 22023 for a user or key that _is_record_key does not take.';

revoke all on function pgidem._refuse_record_key(text, text) from public;
