create or replace function pgidem._batch_size(
  p_limit integer
)
returns integer
language plpgsql
stable
parallel safe
security invoker
as $$
declare
  v_limit integer := p_limit;
begin
  if v_limit is null then
    select s.cleanup_batch_size into v_limit from pgidem.settings s where s.singleton;
  end if;
  if v_limit is null or v_limit < 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = format('p_limit is %s.', coalesce(v_limit::text, 'not set')),
      hint = 'Give a number of rows, at least 1. If the setting is not set, run: insert into pgidem.settings default values.';
  end if;
  return v_limit;
end
$$;

comment on function pgidem._batch_size(integer) is
  'How many rows a batch has: p_limit, or the setting when that is null. Raises 22023 when it is less than 1.';

revoke all on function pgidem._batch_size(integer) from public;
