create or replace function pgidem._check_key_argument(
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
  if p_user_id is null or p_key is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = concat_ws(' ', case when p_user_id is null then 'p_user_id is null.' end, case when p_key is null then 'p_key is null.' end),
      hint = 'Pass the principal and the key as text, a UUID in its form of 36 characters.';
  end if;
end
$$;

comment on function pgidem._check_key_argument(text, text) is 'Raises 22023 when an operator left out whose key it is, or which.';

revoke all on function pgidem._check_key_argument(text, text) from public;
