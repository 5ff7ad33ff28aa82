/*
Installs pgidem or upgrades it, in one transaction: psql -f sql/install.sql. This file is the order in which things are
loaded, the manifest from which `make snapshot` writes the functions migration, and the table of contents.
*/
\set ON_ERROR_STOP on
begin;
set local client_min_messages = warning;

-- Tables and types
\ir migrations/00001_schema.sql
\ir migrations/00003_lease.sql
\ir migrations/00004_cleanup.sql

-- snapshot: begin

-- As at the start of 00001_schema.sql, for a migration of its own.
do $$
begin
  perform pg_catalog.pg_advisory_xact_lock(3515847363677139126);
  perform pg_catalog.set_config('pgidem.search_path', pg_catalog.current_setting('search_path'), true),
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
end
$$;

-- Helpers: not for callers, granted to nobody
\ir functions/_now.sql
\ir functions/_gate.sql
\ir functions/_uuid.sql
\ir functions/_refuse_duration.sql
\ir functions/_seconds.sql
\ir functions/_duration.sql
\ir functions/_wait_limit.sql
\ir functions/_queue.sql
\ir functions/_mine.sql
\ir functions/_runner.sql
\ir functions/_read.sql
\ir functions/_await_gate.sql
\ir functions/_remove_expired.sql
\ir functions/_complete.sql
\ir functions/_record_gate.sql
\ir functions/_is_record_key.sql
\ir functions/_refuse_record_key.sql
\ir functions/_refuse_token.sql
\ir functions/_read_record.sql
\ir functions/_await_record.sql
\ir functions/_next_token.sql
\ir functions/_take_over.sql
\ir functions/_recorded.sql

-- Unit of work
\ir functions/unit_of_work/idem_begin.sql
\ir functions/unit_of_work/idem_complete.sql
\ir functions/unit_of_work/idem_save_final.sql

-- Lease
\ir functions/lease/idem_claim.sql
\ir functions/lease/idem_claim_committed.sql
\ir functions/lease/idem_finish.sql
\ir functions/lease/idem_release.sql
\ir functions/lease/idem_renew.sql
\ir functions/lease/idem_assert_lease.sql

-- Cleanup
\ir functions/cleanup/_batch_size.sql
\ir functions/cleanup/_delete_expired.sql
\ir functions/cleanup/cleanup_batch.sql
\ir functions/cleanup/_cleanup_jobs.sql
\ir functions/cleanup/_trim_run_details.sql
\ir functions/cleanup/_cleanup_step.sql
\ir functions/cleanup/cleanup.sql
\ir functions/cleanup/_cron_schedule.sql
\ir functions/cleanup/schedule_cleanup.sql
\ir functions/cleanup/unschedule_cleanup.sql
\ir functions/cleanup/_next_cleanup.sql
\ir functions/cleanup/_unanswered.sql
\ir functions/cleanup/stats.sql
\ir functions/cleanup/cleanup_runs.sql

-- Operations
\ir functions/operations/version.sql
\ir functions/operations/show_settings.sql
\ir functions/operations/register_principal.sql
\ir functions/operations/_check_key_argument.sql
\ir functions/operations/lookup_key.sql
\ir functions/operations/_refuse_running.sql
\ir functions/operations/_forget.sql
\ir functions/operations/_forget_record.sql
\ir functions/operations/forget_key.sql
\ir functions/operations/forget_principal.sql
\ir functions/operations/_attach_step.sql
\ir functions/operations/attach_principals.sql
\ir functions/operations/_group_functions.sql
\ir functions/operations/_grant_group.sql
\ir functions/operations/grant_app.sql
\ir functions/operations/grant_operator.sql
\ir functions/operations/_regrant.sql

-- Doctor
\ir functions/doctor/_finding.sql
\ir functions/doctor/_app_roles.sql
\ir functions/doctor/_role_setting.sql
\ir functions/doctor/_role_timeout.sql
\ir functions/doctor/_diagnose_schema.sql
\ir functions/doctor/_diagnose_server.sql
\ir functions/doctor/_diagnose_roles.sql
\ir functions/doctor/_diagnose_tables.sql
\ir functions/doctor/_diagnose_cleanup.sql
\ir functions/doctor/_diagnose_keys.sql
\ir functions/doctor/doctor.sql

-- What earlier versions called
drop function if exists pgidem._runner(uuid, uuid);

-- New functions reach the roles that were granted their group before.
do $$ begin perform pgidem._regrant(); end $$;

do $$ begin perform set_config('search_path', current_setting('pgidem.search_path'), true); end $$;

-- snapshot: end

commit;
