create or replace function pgidem._app_roles(
  out p_role oid,
  out p_name text
)
returns setof record
language plpgsql
stable
parallel safe
security invoker
as $$
begin
  return query
  select r.oid, quote_ident(r.rolname)
  from pg_roles r
  where r.rolcanlogin
    and not r.rolsuper
    and has_function_privilege(r.oid, 'pgidem.idem_begin(uuid, uuid, text, bytea, interval, interval)'::regprocedure, 'execute')
    and r.oid <> (select n.nspowner from pg_namespace n where n.nspname = 'pgidem');
  if not found then
    return query
    select r.oid, quote_ident(r.rolname) from pg_roles r where r.rolname = session_user;
  end if;
end
$$;

comment on function pgidem._app_roles() is
  'The roles that can log in and call idem_begin, without superusers and the owner; where there is none, the role of this session.';

revoke all on function pgidem._app_roles() from public;
