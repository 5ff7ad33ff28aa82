-- +goose Up

/*
Tables and types. Hand-written, forward only and idempotent: a database installed by psql is adopted by goose and the
other way round, and running the file again changes nothing. It may never name a function of pgidem, since install.sql
runs it before the functions exist.
*/

-- One installation at a time: the lock is that of `pgidem migrate`.
--
-- What the sources name is what PostgreSQL provides, whatever stands in the path of the role that installs: a role that may
-- create there could plant operators. The path is put back at the end, for the transaction may not be ours alone.
-- +goose StatementBegin
do $$
begin
  perform pg_catalog.pg_advisory_xact_lock(3515847363677139126);
  perform pg_catalog.set_config('pgidem.search_path', pg_catalog.current_setting('search_path'), true),
    pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true);
end
$$;
-- +goose StatementEnd

-- "create schema if not exists" wants the right to create one even where an administrator has made it.
-- +goose StatementBegin
do $$
begin
  if to_regnamespace('pgidem') is null then
    create schema pgidem;
  end if;
end
$$;
-- +goose StatementEnd
comment on schema pgidem is
  'HTTP idempotency keys: the operation behind a key takes effect once, every repeat gets the first answer. Applications call the idem_ functions; the tables belong to pgidem.';

create table if not exists pgidem.principals (
  id uuid not null,
  created_at timestamptz not null default now(),
  constraint principals_pkey primary key (id)
);
comment on table pgidem.principals is
  'The built-in list of principals, so that pgidem runs by itself. An application that has a table of users points the foreign key there with attach_principals.';
comment on column pgidem.principals.id is 'Whose keys they are.';
comment on column pgidem.principals.created_at is 'When the principal was registered.';
comment on constraint principals_pkey on pgidem.principals is 'One row per principal.';

/*
The foreign key is deferred: checked at once it would lock the principal's row at begin (for key share), and two
requests of one user whose handlers then lock that user for update would deadlock.

Every row goes in the end, so dead ones come as steadily as new ones, and the cleanup walks over their index entries until
a vacuum takes them. The server's default waits until a fifth of the table is dead; here it is a fiftieth.
*/
create table if not exists pgidem.idempotency_keys (
  principal_id uuid not null,
  key uuid not null,
  action text not null,
  request_sha256 bytea not null,
  state text not null default 'in_progress',
  response_status smallint,
  response_body jsonb,
  resource_id uuid,
  created_at timestamptz not null default now(),
  expires_at timestamptz not null,
  constraint idempotency_keys_pkey primary key (principal_id, key),
  constraint idempotency_keys_state_check check (state in ('in_progress', 'completed')),
  constraint idempotency_keys_principal_id_fkey foreign key (principal_id)
    references pgidem.principals (id) on delete cascade deferrable initially deferred
) with (autovacuum_vacuum_scale_factor = 0.02);

-- "create index if not exists" locks writers out even where the index is there, and psql runs this file at each upgrade.
-- +goose StatementBegin
do $$
begin
  if to_regclass('pgidem.idempotency_keys_expires_at_idx') is null then
    create index idempotency_keys_expires_at_idx on pgidem.idempotency_keys (expires_at);
  end if;
end
$$;
-- +goose StatementEnd

comment on table pgidem.idempotency_keys is
  'One row per key of a principal in the unit-of-work mode: inserted by idem_begin in the transaction of the effect, completed by idem_complete before its COMMIT.';
comment on column pgidem.idempotency_keys.principal_id is 'Whose key it is.';
comment on column pgidem.idempotency_keys.key is 'What the client sent in Idempotency-Key.';
comment on column pgidem.idempotency_keys.action is 'Name of the operation, for operators. Never compared.';
comment on column pgidem.idempotency_keys.request_sha256 is 'Fingerprint: SHA-256 of the request, 32 bytes.';
comment on column pgidem.idempotency_keys.state is
  'in_progress or completed. A committed row in state in_progress belongs to a caller that committed without idem_complete.';
comment on column pgidem.idempotency_keys.response_status is 'HTTP status of the stored response.';
comment on column pgidem.idempotency_keys.response_body is
  'Body of the stored response, null when it had none; {"one_time_secret": true} when the body held a secret that is shown once.';
comment on column pgidem.idempotency_keys.resource_id is 'The top-level member id of the response body when that is a UUID.';
comment on column pgidem.idempotency_keys.created_at is 'When the claim was made.';
comment on column pgidem.idempotency_keys.expires_at is 'From this instant on the row counts as absent, cleaned or not.';
comment on constraint idempotency_keys_pkey on pgidem.idempotency_keys is 'The claim: one row per principal and key.';
comment on constraint idempotency_keys_state_check on pgidem.idempotency_keys is 'A row is in progress or completed.';
comment on constraint idempotency_keys_principal_id_fkey on pgidem.idempotency_keys is
  'An unknown principal fails at COMMIT with SQLSTATE 23503 and nothing takes effect. attach_principals points it elsewhere.';
comment on index pgidem.idempotency_keys_expires_at_idx is 'Lets the cleanup find expired rows without reading live ones.';

/*
The single place for defaults. A table and no GUC: any session may set a GUC, and a security definer function must not
take orders from its caller's session.
*/
create table if not exists pgidem.settings (
  singleton boolean not null default true,
  key_ttl interval not null default '24 hours',
  lock_timeout interval not null default '2 seconds',
  lease interval not null default '10 minutes',
  retention interval not null default '24 hours',
  cleanup_interval interval not null default '1 minute',
  cleanup_batch_size integer not null default 1000,
  constraint settings_pkey primary key (singleton),
  constraint settings_singleton_check check (singleton),
  constraint settings_key_ttl_check check (isfinite(key_ttl) and extract(year from key_ttl) = 0
    and extract(month from key_ttl) = 0 and extract(epoch from key_ttl) > 0 and extract(epoch from key_ttl) <= 315576000),
  constraint settings_lock_timeout_check check (isfinite(lock_timeout) and extract(year from lock_timeout) = 0
    and extract(month from lock_timeout) = 0 and extract(epoch from lock_timeout) > 0 and extract(epoch from lock_timeout) <= 315576000),
  constraint settings_lease_check check (isfinite(lease) and extract(year from lease) = 0
    and extract(month from lease) = 0 and extract(epoch from lease) > 0 and extract(epoch from lease) <= 315576000),
  constraint settings_retention_check check (isfinite(retention) and extract(year from retention) = 0
    and extract(month from retention) = 0 and extract(epoch from retention) > 0 and extract(epoch from retention) <= 315576000),
  constraint settings_cleanup_interval_check check (isfinite(cleanup_interval) and extract(year from cleanup_interval) = 0
    and extract(month from cleanup_interval) = 0 and extract(epoch from cleanup_interval) > 0
    and extract(epoch from cleanup_interval) <= 315576000 and extract(epoch from cleanup_interval) % 60 = 0),
  constraint settings_cleanup_batch_size_check check (cleanup_batch_size between 1 and 1000000)
);
insert into pgidem.settings default values on conflict on constraint settings_pkey do nothing;

comment on table pgidem.settings is
$$Defaults, in one row. A parameter given to a function wins.

Example:
-- as the owner
update pgidem.settings set key_ttl = interval '48 hours';$$;
comment on column pgidem.settings.singleton is 'Always true: there is one row.';
comment on column pgidem.settings.key_ttl is 'How long a stored response of the unit-of-work mode answers, counted from the claim. Unit: given with the value.';
comment on column pgidem.settings.lock_timeout is 'How long a repeat waits for the transaction that runs the same key. Unit: given with the value.';
comment on column pgidem.settings.lease is 'How long a claim of the lease mode holds without renewal. Unit: given with the value.';
comment on column pgidem.settings.retention is 'How long a stored response of the lease mode answers, counted from its finish. Unit: given with the value.';
comment on column pgidem.settings.cleanup_interval is 'How often the scheduled cleanup runs. Unit: given with the value, whole minutes.';
comment on column pgidem.settings.cleanup_batch_size is 'How many rows the cleanup deletes in one transaction. Unit: rows.';
comment on constraint settings_pkey on pgidem.settings is 'Allows one row only, together with settings_singleton_check.';
comment on constraint settings_singleton_check on pgidem.settings is 'The only row is the one with singleton = true.';
comment on constraint settings_key_ttl_check on pgidem.settings is 'More than zero, at most 10 years, no months.';
comment on constraint settings_lock_timeout_check on pgidem.settings is 'More than zero, at most 10 years, no months.';
comment on constraint settings_lease_check on pgidem.settings is 'More than zero, at most 10 years, no months.';
comment on constraint settings_retention_check on pgidem.settings is 'More than zero, at most 10 years, no months.';
comment on constraint settings_cleanup_interval_check on pgidem.settings is 'Whole minutes, more than zero, at most 10 years, no months.';
comment on constraint settings_cleanup_batch_size_check on pgidem.settings is 'From 1 to 1000000.';

-- create type has no "if not exists".
-- +goose StatementBegin
do $$
begin
  if to_regtype('pgidem.begin_result') is null then
    create type pgidem.begin_result as (
      outcome text,
      response_status integer,
      response_body text,
      resource_id uuid,
      one_time_secret boolean,
      retry_after integer,
      created_at timestamptz,
      expires_at timestamptz
    );
  end if;
end
$$;
-- +goose StatementEnd
comment on type pgidem.begin_result is 'What idem_begin and idem_save_final return.';
comment on column pgidem.begin_result.outcome is 'claimed, replay, reused or in_progress; stored from idem_save_final. Never null.';
comment on column pgidem.begin_result.response_status is 'HTTP status of the stored response; with replay and stored.';
comment on column pgidem.begin_result.response_body is 'Body of the stored response as text, null when it had none; with replay and stored.';
comment on column pgidem.begin_result.resource_id is 'The id that the stored response named; with replay and stored.';
comment on column pgidem.begin_result.one_time_secret is 'True when the stored response held a secret that is shown once and was not stored.';
comment on column pgidem.begin_result.retry_after is 'Seconds after which a repeat makes sense; with in_progress.';
comment on column pgidem.begin_result.created_at is 'When the claim was made; null while another transaction runs the key.';
comment on column pgidem.begin_result.expires_at is 'When the stored response stops answering; null while another transaction runs the key.';

-- +goose StatementBegin
do $$
begin
  if to_regtype('pgidem.lookup_result') is null then
    create type pgidem.lookup_result as (
      table_name text,
      state text,
      live boolean,
      action text,
      response_status integer,
      resource_id uuid,
      one_time_secret boolean,
      created_at timestamptz,
      age interval,
      expires_at timestamptz,
      running_pid integer,
      response_body text
    );
  end if;
end
$$;
-- +goose StatementEnd
comment on type pgidem.lookup_result is 'What lookup_key returns.';
comment on column pgidem.lookup_result.table_name is 'The table that holds the key.';
comment on column pgidem.lookup_result.state is 'in_progress or completed.';
comment on column pgidem.lookup_result.live is 'False when the row has expired: it counts as absent and waits for the cleanup.';
comment on column pgidem.lookup_result.action is 'Name of the operation.';
comment on column pgidem.lookup_result.response_status is 'HTTP status of the stored response.';
comment on column pgidem.lookup_result.resource_id is 'The id that the stored response named.';
comment on column pgidem.lookup_result.one_time_secret is 'True when the response held a secret that is shown once and was not stored.';
comment on column pgidem.lookup_result.created_at is 'When the claim was made; null while an open transaction holds it.';
comment on column pgidem.lookup_result.age is 'Time since created_at.';
comment on column pgidem.lookup_result.expires_at is 'When the stored response stops answering.';
comment on column pgidem.lookup_result.running_pid is
  'Process id of the session whose open transaction runs the key, as in pg_stat_activity; 0 for a prepared transaction.';
comment on column pgidem.lookup_result.response_body is 'Body of the stored response; null unless p_with_body was given.';

-- +goose StatementBegin
do $$ begin perform set_config('search_path', current_setting('pgidem.search_path'), true); end $$;
-- +goose StatementEnd
