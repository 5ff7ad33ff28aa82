create or replace function pgidem._diagnose_schema()
returns setof pgidem.diagnosis
language plpgsql
stable
parallel safe
security invoker
as $$
declare
  v_found text;
  v_count bigint;
  v_settings pgidem.settings;
  v_key record;
begin
  -- The first three of them.
  select array_to_string((array_agg(distinct o.name))[1:3], ', '), count(distinct o.name)
  into v_found, v_count
  from (
    select 'schema pgidem', a.grantee
    from pg_namespace n cross join lateral aclexplode(n.nspacl) a
    where n.nspname = 'pgidem'
    union all
    select p.oid::regprocedure::text, a.grantee
    from pg_proc p cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    where p.pronamespace = 'pgidem'::regnamespace
    union all
    select c.oid::regclass::text, a.grantee
    from pg_class c cross join lateral aclexplode(c.relacl) a
    where c.relnamespace = 'pgidem'::regnamespace
    union all
    select c.oid::regclass || '.' || quote_ident(t.attname), a.grantee
    from pg_class c join pg_attribute t on t.attrelid = c.oid cross join lateral aclexplode(t.attacl) a
    where c.relnamespace = 'pgidem'::regnamespace
  ) o (name, grantee)
  where o.grantee = 0;
  return next pgidem._finding('public_rights', case when v_count = 0 then 'ok' else 'fail' end,
    case
      when v_count = 0 then 'PUBLIC has no right here'
      else 'PUBLIC has rights on ' || v_found || case when v_count > 3 then format(' and %s more', v_count - 3) else '' end
    end,
    'As the owner of the schema run: revoke all on schema pgidem from public; revoke all on all routines in schema pgidem from public; revoke all on all tables in schema pgidem from public');

  select string_agg(format('alter table %s set logged', c.oid::regclass), '; ')
  into v_found
  from pg_class c
  where c.relnamespace = 'pgidem'::regnamespace
    and c.relkind in ('r', 'p')
    and c.relpersistence <> 'p';
  return next pgidem._finding('logged_tables', case when v_found is null then 'ok' else 'fail' end,
    case when v_found is null then 'every table survives a crash' else 'a crash empties a table, and every retry would run again' end,
    'As the owner of the schema run: ' || v_found);

  select c.convalidated and c.conname = 'idempotency_keys_principal_id_fkey' as is_whole, c.confrelid::regclass as principals, a.attname
  into v_key
  from pg_constraint c
  join pg_attribute a on a.attrelid = c.confrelid and a.attnum = c.confkey[1]
  where c.conrelid = 'pgidem.idempotency_keys'::regclass
    and c.contype = 'f'
  order by 1
  limit 1;
  return next pgidem._finding('foreign_key', case when v_key.is_whole then 'ok' else 'warn' end,
    case
      when v_key.is_whole then 'principals are rows of ' || v_key.principals
      when v_key.principals is null then 'nothing says that a principal exists, and a deleted one leaves its keys behind'
      else 'attach_principals did not come to its end: a foreign key is not validated'
    end,
    format('As the owner of the schema run: call pgidem.attach_principals(%L, %L)', coalesce(v_key.principals, 'pgidem.principals'), coalesce(v_key.attname, 'id')));

  select s.* into v_settings from pgidem.settings s where s.singleton;
  return next pgidem._finding('settings', case when found then 'ok' else 'fail' end,
    case
      when found then format('key_ttl %s, lock_timeout %s, lease %s, retention %s',
        v_settings.key_ttl, v_settings.lock_timeout, v_settings.lease, v_settings.retention)
      else 'the row of defaults is missing, and requests fail'
    end,
    'As the owner of the schema run: insert into pgidem.settings default values');
end
$$;

comment on function pgidem._diagnose_schema() is 'The checks of doctor that read the schema pgidem: rights, tables, foreign key and settings.';

revoke all on function pgidem._diagnose_schema() from public;
