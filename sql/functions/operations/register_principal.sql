create or replace function pgidem.register_principal(
  p_id uuid
)
returns void
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
as $$
begin
  if p_id is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = 'p_id is null.',
      hint = 'Pass the UUID of the principal.';
  end if;
  insert into pgidem.principals (id)
  values (p_id)
  on conflict on constraint principals_pkey do nothing;
end
$$;

comment on function pgidem.register_principal(uuid) is
$$Makes a principal known to the built-in table principals.

Calling it again changes nothing. Not needed after attach_principals.

Parameters:
p_id: the principal.

Returns:
Nothing.

Errors:
22023: p_id is null.
55P03: a lock was held for 2 seconds.

Example:
-- as the application
select pgidem.register_principal('0192f0c1-2345-7abc-8def-0123456789ab');$$;

revoke all on function pgidem.register_principal(uuid) from public;
