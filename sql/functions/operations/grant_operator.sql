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
$$Lets a role operate pgidem: grants it USAGE on the schema and EXECUTE on cleanup, cleanup_batch, lookup_key, forget_key, show_settings and version. Run by the owner of the schema. Later versions grant their new functions to the same roles.

Parameters: p_role: the role, which must exist.
Errors: 22023 when p_role is public or null. 42704 when there is no such role. 42501 when the caller does not own the schema.
Example: select pgidem.grant_operator('dba');$$;

revoke all on function pgidem.grant_operator(name) from public;
