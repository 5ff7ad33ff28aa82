/*
What the constraints of the table demand, before a wait or a write and without the text in the error.
*/
create or replace function pgidem._check_record_key(
  p_user_id text,
  p_key text
)
returns void
language plpgsql
stable
parallel safe
security invoker
as $$
declare
  v_user_id constant text not null := coalesce(p_user_id, '') collate "C";
  v_key constant text not null := coalesce(p_key, '') collate "C";
begin
  if char_length(v_user_id) between 1 and 255 and v_user_id collate "C" ~ '[^ ]'
     and v_user_id collate "C" !~ E'[\\u0001-\\u001f\\u007f-\\u009f]'
     and char_length(v_key) between 1 and 255 and v_key collate "C" ~ '^[!-~]([ -~]*[!-~])?$' then
    return;
  end if;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = 'invalid argument',
    detail = format('p_user_id has %s characters, p_key has %s; or one of them holds a character that is not allowed.',
      char_length(v_user_id), char_length(v_key)),
    hint = 'Give p_user_id 1 to 255 characters, not all blank and none of them a control character, and p_key 1 to 255 characters from 0x21 to 0x7E, with spaces inside.';
end
$$;

comment on function pgidem._check_record_key(text, text) is
  'Raises 22023 unless idempotency_record can hold the user and the key.';

revoke all on function pgidem._check_record_key(text, text) from public;
