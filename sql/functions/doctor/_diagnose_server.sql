create or replace function pgidem._diagnose_server()
returns setof pgidem.diagnosis
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_off text;
  v_names constant text := current_setting('synchronous_standby_names');
  v_standbys record;
begin
  select string_agg(r.p_name, ', ') into v_off
  from pgidem._app_roles() r
  where pgidem._role_setting(r.p_role, 'default_transaction_read_only')::boolean;
  return next pgidem._finding('read_only', case when pg_is_in_recovery() then 'warn' when v_off is not null then 'fail' else 'ok' end,
    case
      when pg_is_in_recovery() then 'this server is a standby: it can be asked, and no request can be claimed here'
      when v_off is not null then 'default_transaction_read_only is on for ' || v_off || ': no request can be claimed'
      else 'this server takes writes'
    end,
    case
      when pg_is_in_recovery() then 'Let applications connect to the primary (target_session_attrs=read-write). If this one is to be it, run: select pg_promote()'
      else 'Run: alter role ' || v_off || ' reset default_transaction_read_only, and look for it in the settings of the database and the server'
    end);

  select string_agg(g.name, ', ' order by g.name) into v_off
  from pg_settings g
  where g.name in ('fsync', 'full_page_writes')
    and g.setting = 'off';
  return next pgidem._finding('crash_safety', case when v_off is null then 'ok' else 'fail' end,
    case when v_off is null then 'fsync and full_page_writes are on' else 'off: ' || v_off || '; a crash of the machine can destroy the database' end,
    'In postgresql.conf set to on: ' || v_off);

  -- A backup is under way there for a while, and a subscriber cannot take over.
  select count(*) filter (where s.sync_state in ('sync', 'quorum')) as in_step,
    count(*) filter (where s.sync_state in ('async', 'potential')) as behind,
    count(*) filter (where s.sync_state is null) as unseen
  into v_standbys
  from pg_stat_replication s
  where s.state is distinct from 'backup'
    and not exists (select from pg_replication_slots l where l.active_pid = s.pid and l.slot_type = 'logical');
  return next pgidem._finding('standbys',
    case
      when pg_is_in_recovery() then 'ok'
      when v_standbys.unseen > 0 then 'warn'
      when v_names <> '' and v_standbys.in_step = 0 then 'fail'
      when v_names = '' and v_standbys.behind > 0 then 'warn'
      else 'ok'
    end,
    case
      when pg_is_in_recovery() then 'for the primary to say'
      when v_standbys.unseen > 0 then format('standbys: %s, and the owner of the schema may not see how they follow', v_standbys.unseen)
      when v_names <> '' and v_standbys.in_step = 0 then 'synchronous_standby_names is set and no such standby is connected: every commit waits'
      when v_names = '' and v_standbys.behind > 0 then
        format('asynchronous standbys: %s, no synchronous one; a promotion loses the last commits, and of a lease only the record, not its effect', v_standbys.behind)
      when v_names = '' then 'none is connected'
      else format('synchronous standbys: %s, others: %s', v_standbys.in_step, v_standbys.behind)
    end,
    case
      when v_standbys.unseen > 0 then format('As a superuser run: grant pg_read_all_stats to %I',
        (select r.rolname from pg_namespace n join pg_roles r on r.oid = n.nspowner where n.nspname = 'pgidem'))
      when v_names <> '' then 'Start the standby, or as a superuser run: alter system reset synchronous_standby_names; select pg_reload_conf()'
      else 'As a superuser run: alter system set synchronous_standby_names = ''*''; select pg_reload_conf(). Or use DownstreamKey for every effect elsewhere, and compare with the provider after a promotion'
    end);
end
$$;

comment on function pgidem._diagnose_server() is 'The checks of doctor that ask whether this server takes writes and keeps them: read-only, crash safety, standbys.';

revoke all on function pgidem._diagnose_server() from public;
