/*
Stable, or _duration could not be inlined.
*/
create or replace function pgidem._refuse_duration(
  p_name text,
  p_value interval
)
returns interval
language plpgsql
stable
parallel safe
security invoker
as $$
begin
  raise exception using
    errcode = 'invalid_parameter_value',
    message = 'invalid duration',
    detail = format('%s is %s.', p_name, coalesce(p_value::text, 'not set')),
    hint = 'Give more than zero and at most 10 years (3652.5 days), without months, such as interval ''24 hours''. If a setting is not set, run: insert into pgidem.settings default values.';
end
$$;

comment on function pgidem._refuse_duration(text, interval) is
  'Raises 22023 and says which duration is none. p_name: what to call it; p_value: what it is.';

revoke all on function pgidem._refuse_duration(text, interval) from public;
