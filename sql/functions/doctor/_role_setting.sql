/*
A session of another role cannot be asked. Where nobody set the value for that role or this database, it is that of the
server, which is taken from this session: so a role that asks should have no settings of its own.
*/
create or replace function pgidem._role_setting(
  p_role oid,
  p_name text
)
returns text
language sql
stable
parallel safe
security invoker
as $$
  select coalesce(
    (
      select substr(c.setting, strpos(c.setting, '=') + 1)
      from pg_db_role_setting s
      cross join unnest(s.setconfig) c (setting)
      where s.setrole in (p_role, 0)
        and s.setdatabase in (0, (select d.oid from pg_database d where d.datname = current_database()))
        and split_part(c.setting, '=', 1) = p_name
      order by s.setrole = 0, s.setdatabase = 0
      limit 1
    ),
    (select g.reset_val from pg_settings g where g.name = p_name)
  )
$$;

comment on function pgidem._role_setting(oid, text) is
  'What a new session of a role in this database starts with, as text; null for a setting that this server does not know.';

revoke all on function pgidem._role_setting(oid, text) from public;
