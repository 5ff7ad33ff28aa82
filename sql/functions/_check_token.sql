create or replace function pgidem._check_token(
  p_token bigint
)
returns void
language plpgsql
immutable
parallel safe
security invoker
as $$
begin
  if p_token is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = 'p_token is null.',
      hint = 'Pass the token that idem_claim gave. It gives one with the outcome claimed only.';
  end if;
end
$$;

comment on function pgidem._check_token(bigint) is 'Raises 22023 when a token is null.';

revoke all on function pgidem._check_token(bigint) from public;
