create or replace function pgidem._refuse_token(
  p_token bigint
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
    detail = format('p_token is %s.', coalesce(p_token::text, 'null')),
    hint = 'Pass the token that idem_claim gave. It gives one with the outcome claimed only.';
end
$$;

comment on function pgidem._refuse_token(bigint) is 'Raises 22023 for a token that is null.';

revoke all on function pgidem._refuse_token(bigint) from public;
