/*
Autovacuum comes at a fiftieth of dead rows, so a fifth means that it is held up. Space that is free inside the file is
estimated from the width of a row as the planner knows it; a table lives through waves, so three quarters of it may be free.
*/
create or replace function pgidem._diagnose_tables()
returns setof pgidem.diagnosis
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_found text;
  v_mend text;
  v_age bigint;
  v_multixact_age bigint;
begin
  select string_agg(distinct o.what, ', '), string_agg(distinct o.mend, '; ')
  into v_found, v_mend
  from (
    select g.name || ' is off', 'in postgresql.conf set ' || g.name || ' = on'
    from pg_settings g
    where g.name in ('autovacuum', 'track_counts') and g.setting = 'off'
    union all
    select 'autovacuum is off for ' || c.oid::regclass, format('alter table %s reset (autovacuum_enabled)', c.oid::regclass)
    from pg_class c
    cross join lateral pg_options_to_table(c.reloptions) o
    where c.relnamespace = 'pgidem'::regnamespace and o.option_name = 'autovacuum_enabled' and not o.option_value::boolean
  ) o (what, mend);
  return next pgidem._finding('autovacuum', case when v_found is null then 'ok' else 'warn' end,
    coalesce(v_found || ': the space of deleted keys is never used again', 'on for every table'),
    'Mend: ' || v_mend);

  select string_agg(format('%s rows of %s are dead', s.n_dead_tup, c.oid::regclass), ', '), string_agg('vacuum ' || c.oid::regclass, '; ')
  into v_found, v_mend
  from pg_class c
  join pg_stat_all_tables s on s.relid = c.oid
  where c.oid in ('pgidem.idempotency_keys'::regclass, 'pgidem.idempotency_record'::regclass)
    and s.n_dead_tup > 10000
    and s.n_dead_tup > 0.2 * s.n_live_tup;
  return next pgidem._finding('dead_rows', case when v_found is null then 'ok' else 'warn' end,
    coalesce(v_found, 'a vacuum keeps up'),
    'End what holds old rows (the oldest backend_xmin in pg_stat_activity, pg_prepared_xacts, pg_replication_slots), then as the owner run: ' || v_mend);

  select string_agg(format('%s of %s are free', pg_size_pretty(t.bytes - t.used), t.name), ', '), string_agg('vacuum full ' || t.name, '; ')
  into v_found, v_mend
  from (
    select c.oid::regclass as name, pg_relation_size(c.oid) as bytes,
      -- A tuple's header and line pointer take 28 bytes.
      (greatest(c.reltuples, 0) * (28 + (select sum(w.avg_width * (1 - w.null_frac)) from pg_stats w where w.schemaname = 'pgidem' and w.tablename = c.relname)))::bigint as used
    from pg_class c
    where c.oid in ('pgidem.idempotency_keys'::regclass, 'pgidem.idempotency_record'::regclass)
  ) t
  where t.bytes > 64 * 1024 * 1024
    and t.used < t.bytes / 4;
  return next pgidem._finding('bloat', case when v_found is null then 'ok' else 'warn' end,
    coalesce(v_found, 'no table is much larger than its rows'),
    'New keys fill that space. To give it back, at a quiet time, for it locks requests out, as the owner run: ' || v_mend);

  select max(age(c.relfrozenxid))::bigint, max(mxid_age(c.relminmxid))::bigint
  into v_age, v_multixact_age
  from pg_class c
  where c.relkind in ('r', 't')
    and (c.relnamespace = 'pgidem'::regnamespace
      or c.oid in (select t.reltoastrelid from pg_class t where t.relnamespace = 'pgidem'::regnamespace));
  v_age := greatest(v_age, (select age(d.datfrozenxid)::bigint from pg_database d where d.datname = current_database()));
  return next pgidem._finding('wraparound',
    case
      when greatest(v_age, v_multixact_age) > 1600000000 then 'fail'
      when v_age > 2 * current_setting('autovacuum_freeze_max_age')::bigint
        or v_multixact_age > 2 * current_setting('autovacuum_multixact_freeze_max_age')::bigint then 'warn'
      else 'ok'
    end,
    format('the oldest row is %s million transactions old, of 2146 at which the server takes no more writes', greatest(v_age, v_multixact_age) / 1000000),
    'End what holds old rows (the oldest backend_xmin in pg_stat_activity, pg_prepared_xacts, pg_replication_slots), then as a superuser run: vacuum (freeze)');
end
$$;

comment on function pgidem._diagnose_tables() is 'The checks of doctor that read what the server knows of the tables: autovacuum, dead rows, free space, wraparound.';

revoke all on function pgidem._diagnose_tables() from public;
