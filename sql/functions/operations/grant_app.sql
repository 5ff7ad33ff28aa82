create or replace function pgidem.grant_app(
  p_role name,
  p_tables boolean default false
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgidem._grant_group(p_role, 'app');
  if p_tables then
    execute format('grant select, insert, update, delete on pgidem.idempotency_keys to %I', p_role);
  end if;
end
$$;

comment on function pgidem.grant_app(name, boolean) is
$$Lets a role of an application call the functions: grants it USAGE on the schema and EXECUTE on the idem_ functions, register_principal, show_settings and version. Run by the owner of the schema. Later versions grant their new functions to the same roles.

Parameters:
p_role: the role, which must exist.
p_tables: true to grant select, insert, update and delete on the table of keys too. Without it the role cannot read stored responses of others.
Errors: 22023 when p_role is public or null. 42704 when there is no such role. 42501 when the caller does not own the schema.
Example: select pgidem.grant_app('shop');$$;

revoke all on function pgidem.grant_app(name, boolean) from public;
