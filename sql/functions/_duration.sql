/*
The result holds seconds only: adding '1 day' to a timestamptz follows the session's time zone, and one day in spring
has 23 hours.
*/
create or replace function pgidem._duration(
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
  if isfinite(p_value) and extract(year from p_value) = 0 and extract(month from p_value) = 0
     and extract(epoch from p_value) > 0 and extract(epoch from p_value) <= 315576000 then
    return make_interval(secs => extract(epoch from p_value)::double precision);
  end if;
  raise exception using
    errcode = 'invalid_parameter_value',
    message = 'invalid duration',
    detail = format('%s is %s.', p_name, coalesce(p_value::text, 'not set')),
    hint = 'Give more than zero and at most 10 years (3652.5 days), without months, such as interval ''24 hours''. If a setting is not set, run: insert into pgidem.settings default values.';
end
$$;

comment on function pgidem._duration(text, interval) is
  'Checks a duration and returns it in exact seconds. Raises 22023 when it is null, zero, negative, infinite, over 10 years or holds months. p_name: what to call it in the error.';

revoke all on function pgidem._duration(text, interval) from public;
