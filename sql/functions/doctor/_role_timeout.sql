create or replace function pgidem._role_timeout(
  p_role oid,
  p_name text
)
returns interval
language sql
stable
parallel safe
security invoker
as $$
  -- A number alone is milliseconds; both write the units min, s and ms the same way.
  select nullif(case when v.value ~ '^[0-9.]+$' then (v.value || ' ms')::interval else v.value::interval end, interval '0')
  from (select trim(pgidem._role_setting(p_role, p_name)) as value) v
$$;

comment on function pgidem._role_timeout(oid, text) is
  'A timeout that a new session of a role in this database starts with; null when it is off.';

revoke all on function pgidem._role_timeout(oid, text) from public;
