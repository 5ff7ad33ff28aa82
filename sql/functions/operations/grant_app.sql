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
    execute format('grant select, insert, update, delete on pgidem.idempotency_keys, pgidem.idempotency_record to %I', p_role);
  end if;
end
$$;

comment on function pgidem.grant_app(name, boolean) is
$$Lets a role of an application call the functions.

It grants the role USAGE on the schema and EXECUTE on the idem_ functions, register_principal,
show_settings and version. Later versions grant their new functions to the same roles. Run it as the
owner of the schema.

Parameters:
p_role: the role, which must exist.
p_tables: true to grant select, insert, update and delete on both tables of keys too. Without it the
  role cannot read stored responses of others.

Returns:
Nothing.

Errors:
22023: p_role is public or null.
42501: the caller does not own the schema.
42704: there is no such role.

Example:
-- as the owner
create role shop_app;
select pgidem.grant_app(p_role => 'shop_app');
select has_function_privilege('shop_app', 'pgidem.register_principal(uuid)', 'execute');
--> t
select has_table_privilege('shop_app', 'pgidem.idempotency_keys', 'select');
--> f$$;

revoke all on function pgidem.grant_app(name, boolean) from public;
