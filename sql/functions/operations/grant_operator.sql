create or replace function pgidem.grant_operator(
  p_role name
)
returns void
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
as $$
begin
  perform pgidem._grant_group(p_role, 'operator');
end
$$;

comment on function pgidem.grant_operator(name) is
$$Lets a role operate pgidem.

It grants the role USAGE on the schema and EXECUTE on cleanup, cleanup_batch, schedule_cleanup,
unschedule_cleanup, stats, cleanup_runs, doctor, lookup_key, forget_key, forget_principal,
show_settings and version. Later versions grant their new functions to the same roles. Run it as the
owner of the schema.

Parameters:
p_role: the role, which must exist.

Returns:
Nothing.

Errors:
22023: p_role is public or null.
42501: the caller does not own the schema.
42704: there is no such role.

Example:
-- as the owner
create role shop_operator;
select pgidem.grant_operator(p_role => 'shop_operator');
select has_function_privilege('shop_operator', 'pgidem.forget_key(text, text, boolean)', 'execute');
--> t
select has_function_privilege('shop_operator', 'pgidem.register_principal(uuid)', 'execute');
--> f$$;

revoke all on function pgidem.grant_operator(name) from public;
