create or replace function pgidem.version()
returns text
language sql
immutable
parallel safe
security invoker
return '0.2.0';

comment on function pgidem.version() is
$$The version of the installed functions.

Returns:
The version, such as 0.2.0.

Errors:
None of its own.

Example:
-- as the application
select pgidem.version();
--> 0.2.0$$;

revoke all on function pgidem.version() from public;
