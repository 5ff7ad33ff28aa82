create or replace function pgidem._grant_group(
  p_role name,
  p_group text
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_function regprocedure;
begin
  -- GRANT reads even the quoted name as the keyword, that is every role.
  if p_role is null or p_role = 'public' then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid role',
      detail = format('p_role is %s.', coalesce(p_role::text, 'null')),
      hint = 'Name one role. Rights for everybody would let every role of the database use and block keys.';
  end if;

  execute format('grant usage on schema pgidem to %I', p_role);
  for v_function in
    select p.oid::regprocedure
    from pg_proc p
    where p.pronamespace = 'pgidem'::regnamespace
      and p.proname = any (pgidem._group_functions(p_group))
  loop
    execute format('grant execute on routine %s to %I', v_function, p_role);
  end loop;
end
$$;

comment on function pgidem._grant_group(name, text) is
  'Grants USAGE on the schema and EXECUTE on the functions of a group that exist. Raises 22023 for public or null, 42704 for an unknown role.';

revoke all on function pgidem._grant_group(name, text) from public;
