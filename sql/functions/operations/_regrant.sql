create or replace function pgidem._regrant()
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
declare
  v_group text;
  v_role name;
begin
  foreach v_group in array array['app', 'operator'] loop
    for v_role in
      select distinct r.rolname
      from pg_proc p
      cross join lateral aclexplode(p.proacl) a
      join pg_roles r on r.oid = a.grantee
      where p.pronamespace = 'pgidem'::regnamespace
        and p.proname = (pgidem._group_functions(v_group))[1]
        and a.privilege_type = 'EXECUTE'
        and a.grantee <> p.proowner
    loop
      perform pgidem._grant_group(v_role, v_group);
    end loop;
  end loop;
end
$$;

comment on function pgidem._regrant() is
  'The last step of every installation and upgrade: grants the functions of each group to the roles that had the group.';

revoke all on function pgidem._regrant() from public;
