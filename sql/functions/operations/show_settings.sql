create or replace function pgidem.show_settings()
returns pgidem.settings
language sql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
as $$
  select s from pgidem.settings s where s.singleton;
$$;

comment on function pgidem.show_settings() is
$$The defaults in force, for callers that may not read the table.

Returns:
The row of settings, null when it is missing.

Errors:
None of its own.

Example:
-- as the application
select key_ttl, lock_timeout from pgidem.show_settings();
--> 24:00:00 | 00:00:02$$;

revoke all on function pgidem.show_settings() from public;
