create or replace function pgidem._diagnose_roles()
returns setof pgidem.diagnosis
language plpgsql
stable
parallel restricted
security invoker
as $$
declare
  v_wait constant interval := (select s.lock_timeout from pgidem.settings s where s.singleton);
  v_roles text;
  v_mend text;
begin
  select string_agg(r.p_name, ', '), string_agg(format('alter role %s set statement_timeout = ''%s s''',
    r.p_name, ceil(2 * extract(epoch from v_wait))), '; ')
  into v_roles, v_mend
  from pgidem._app_roles() r
  where pgidem._role_timeout(r.p_role, 'statement_timeout') <= v_wait;
  return next pgidem._finding('lock_timeout', case when v_roles is null then 'ok' else 'warn' end,
    case
      when v_roles is null then format('repeats wait %s, and no statement_timeout ends that', v_wait)
      else format('statement_timeout of %s is not longer than the %s that repeats wait: they get 503 instead of 409 or a replay', v_roles, v_wait)
    end,
    'Run: ' || v_mend || '. Or shorten lock_timeout in pgidem.settings');

  -- The one since PostgreSQL 17 ends idle transactions too.
  select string_agg(r.p_name, ', '), string_agg(format('alter role %s set idle_in_transaction_session_timeout = ''90s''', r.p_name), '; ')
  into v_roles, v_mend
  from pgidem._app_roles() r
  where pgidem._role_timeout(r.p_role, 'idle_in_transaction_session_timeout') is null
    and pgidem._role_timeout(r.p_role, 'transaction_timeout') is null;
  return next pgidem._finding('idle_timeout', case when v_roles is null then 'ok' else 'warn' end,
    case
      when v_roles is null then 'a caller that stands still in a transaction is ended'
      else format('idle_in_transaction_session_timeout is off for %s: a caller that stands still keeps its key (goshell sets it by itself)', v_roles)
    end,
    'Run: ' || v_mend);

  select string_agg(r.p_name, ', '), string_agg(format('alter role %s set tcp_user_timeout = ''30s''', r.p_name), '; ')
  into v_roles, v_mend
  from pgidem._app_roles() r
  where pgidem._role_timeout(r.p_role, 'tcp_user_timeout') is null
    and pgidem._role_timeout(r.p_role, 'tcp_keepalives_idle') is null;
  return next pgidem._finding('tcp_timeouts', case when v_roles is null then 'ok' else 'warn' end,
    case
      when v_roles is null then 'a client that is gone without a word is noticed'
      else format('tcp_user_timeout and tcp_keepalives_idle are off for %s: a caller whose network went dark keeps its key for hours', v_roles)
    end,
    'Run: ' || v_mend);

  select string_agg(r.p_name, ', '), string_agg(format('alter role %s set synchronous_commit = on', r.p_name), '; ')
  into v_roles, v_mend
  from pgidem._app_roles() r
  where pgidem._role_setting(r.p_role, 'synchronous_commit') in ('off', 'false', 'no', '0')
    or (pgidem._role_setting(r.p_role, 'synchronous_commit') = 'local' and current_setting('synchronous_standby_names') <> '');
  return next pgidem._finding('synchronous_commit', case when v_roles is null then 'ok' else 'warn' end,
    case
      when v_roles is null then 'a commit is kept before it is reported'
      else format('synchronous_commit is off or local for %s: a crash or a promotion can lose a lease whose effect has happened', v_roles)
    end,
    'Run: ' || v_mend);
end
$$;

comment on function pgidem._diagnose_roles() is 'The checks of doctor that read what sessions of the application start with: timeouts and synchronous_commit.';

revoke all on function pgidem._diagnose_roles() from public;
