-- +goose Up

/*
What the cleanup writes down of its runs, what stats and doctor return, how bodies are compressed, and what a vacuum may do. Like 00001_schema.sql:
forward only, idempotent, and without a function of pgidem.
*/

-- +goose StatementBegin
do $$
begin
  perform pg_catalog.pg_advisory_xact_lock(3515847363677139126);
  perform pg_catalog.set_config('pgidem.search_path', pg_catalog.current_setting('search_path'), true),
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
end
$$;
-- +goose StatementEnd

create table if not exists pgidem.cleanup_run (
  id bigint generated always as identity,
  started_at timestamptz not null,
  ended_at timestamptz,
  batches integer not null default 0,
  deleted bigint not null default 0,
  mark timestamptz not null default '-infinity',
  constraint cleanup_run_pkey primary key (id)
);
comment on table pgidem.cleanup_run is 'The last 10000 runs of the cleanup, whoever started them.';
comment on column pgidem.cleanup_run.id is 'Number of the run.';
comment on column pgidem.cleanup_run.started_at is 'When its first batch began.';
comment on column pgidem.cleanup_run.ended_at is 'When it found nothing more to delete; null while it runs, and for ever when it was stopped before.';
comment on column pgidem.cleanup_run.batches is 'How many transactions it took so far.';
comment on column pgidem.cleanup_run.deleted is 'How many rows of both tables it deleted so far.';
comment on column pgidem.cleanup_run.mark is 'The expires_at up to which its last batch went: the next one begins there.';
comment on constraint cleanup_run_pkey on pgidem.cleanup_run is 'One row per run.';
comment on sequence pgidem.cleanup_run_id_seq is 'Numbers the runs.';

-- +goose StatementBegin
do $$
begin
  if to_regtype('pgidem.stat') is null then
    create type pgidem.stat as (
      metric text,
      table_name text,
      value numeric,
      unit text,
      is_estimate boolean
    );
  end if;
end
$$;
-- +goose StatementEnd
comment on type pgidem.stat is 'What stats returns: one figure.';
comment on column pgidem.stat.metric is 'What the figure is about; the comment of stats has the list.';
comment on column pgidem.stat.table_name is 'The table that it is about, null when it is about none.';
comment on column pgidem.stat.value is 'The figure; null when there is none, as for the oldest of no rows.';
comment on column pgidem.stat.unit is 'rows, bytes, seconds, or null for a number.';
comment on column pgidem.stat.is_estimate is 'True when the figure comes from the statistics of the planner, which follow the table at some distance, or from a part of the table.';

-- +goose StatementBegin
do $$
begin
  if to_regtype('pgidem.diagnosis') is null then
    create type pgidem.diagnosis as (
      check_name text,
      status text,
      detail text,
      mend text
    );
  end if;
end
$$;
-- +goose StatementEnd
comment on type pgidem.diagnosis is 'What doctor returns: the result of one check.';
comment on column pgidem.diagnosis.check_name is 'What was looked at; the comment of doctor has the list.';
comment on column pgidem.diagnosis.status is 'ok, warn or fail.';
comment on column pgidem.diagnosis.detail is 'What was found.';
comment on column pgidem.diagnosis.mend is 'What to do about it; null when the status is ok.';

-- Storing a body of 64 KB takes a third of the time with lz4, at 7 percent more space. A server can be built without it. What is
-- stored stays as it is. Asked first, since the statement locks readers out even where it changes nothing.
-- +goose StatementBegin
do $$
declare
  v_lock_timeout constant text := current_setting('lock_timeout');
  v_table regclass;
begin
  -- Requests queue behind a lock that waits. When this fails, run it again.
  perform set_config('lock_timeout', '2s', true);
  for v_table in
    select a.attrelid::regclass
    from pg_attribute a
    where a.attrelid in (to_regclass('pgidem.idempotency_keys'), to_regclass('pgidem.idempotency_record'))
      and a.attname = 'response_body'
      and a.attcompression <> 'l'
  loop
    execute format('alter table %s alter column response_body set compression lz4', v_table);
  end loop;
  perform set_config('lock_timeout', v_lock_timeout, true);
exception
  when feature_not_supported then
    null;
end
$$;
-- +goose StatementEnd

-- A vacuum that gives the empty end of a table back locks everybody out meanwhile, readers of a standby too. The space is
-- for the keys that come next.
alter table pgidem.idempotency_keys set (vacuum_truncate = false, toast.vacuum_truncate = false);
alter table pgidem.idempotency_record set (vacuum_truncate = false, toast.vacuum_truncate = false);

-- +goose StatementBegin
do $$ begin perform set_config('search_path', current_setting('pgidem.search_path'), true); end $$;
-- +goose StatementEnd
