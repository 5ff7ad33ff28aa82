-- +goose Up

/*
The table of the lease functions. Like 00001_schema.sql: forward only, idempotent, and without a function of pgidem.
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

/*
Two instants, since an index on the one that says what lives would make every finish write to all indexes: live_until
decides, and nothing is found by it; expires_at only tells the cleanup when to come, and moves when live_until would pass
it. So a finish within the lease stays on its page (HOT).
*/
create table if not exists pgidem.idempotency_record (
  user_id text collate "C" not null,
  idem_key text collate "C" not null,
  request_sha256 bytea not null,
  token bigint not null,
  first_token bigint not null,
  attempt uuid,
  state text not null default 'in_progress',
  live_until timestamptz not null,
  retention interval not null,
  response_status smallint,
  response_content_type text,
  response_location text,
  response_etag text,
  response_body bytea,
  one_time_secret boolean not null default false,
  created_at timestamptz not null,
  finished_at timestamptz,
  expires_at timestamptz not null,
  constraint idempotency_record_pkey primary key (user_id, idem_key),
  constraint idempotency_record_user_id_check check (char_length(user_id) >= 1 and char_length(user_id) <= 255
    and user_id ~ '[^ ]' and user_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  constraint idempotency_record_idem_key_check check (char_length(idem_key) >= 1 and char_length(idem_key) <= 255
    and idem_key ~ '^[!-~]([ -~]*[!-~])?$'),
  constraint idempotency_record_state_check check (state = 'in_progress'
    or state = 'completed' and response_status is not null and finished_at is not null),
  constraint idempotency_record_expires_at_check check (expires_at >= live_until)
) with (autovacuum_vacuum_scale_factor = 0.02);

-- +goose StatementBegin
do $$
begin
  if to_regclass('pgidem.idempotency_record_expires_at_idx') is null then
    create index idempotency_record_expires_at_idx on pgidem.idempotency_record (expires_at);
  end if;
end
$$;
-- +goose StatementEnd

comment on table pgidem.idempotency_record is
  'One row per key of a user in the lease mode, where a committed claim runs an operation outside this database, and in the unit of work of any bytes, which calls the same functions in the transaction of the effect.';
comment on column pgidem.idempotency_record.user_id is 'Whose key it is: 1 to 255 printable characters.';
comment on column pgidem.idempotency_record.idem_key is 'What the client sent in Idempotency-Key: 1 to 255 printable ASCII characters.';
comment on column pgidem.idempotency_record.request_sha256 is 'Fingerprint: SHA-256 of the request, 32 bytes.';
comment on column pgidem.idempotency_record.token is
  'Whose claim it is. Microseconds of the clock, and larger than any earlier token of the key: a late worker is told from its successor.';
comment on column pgidem.idempotency_record.first_token is
  'Token of the first of the takeovers, one after another, for this very request: a late worker from there on asked for the same.';
comment on column pgidem.idempotency_record.attempt is 'What the caller named its call: the answer to the same call is given again, token included.';
comment on column pgidem.idempotency_record.state is 'in_progress or completed.';
comment on column pgidem.idempotency_record.live_until is
  'End of the lease while the operation runs, afterwards the end of the retention. From this instant on the row counts as absent, cleaned or not.';
comment on column pgidem.idempotency_record.retention is 'How long the stored response answers, counted from its finish. Unit: given with the value.';
comment on column pgidem.idempotency_record.response_status is 'HTTP status of the stored response.';
comment on column pgidem.idempotency_record.response_content_type is 'Header Content-Type of the stored response, null when it had none.';
comment on column pgidem.idempotency_record.response_location is 'Header Location of the stored response, null when it had none.';
comment on column pgidem.idempotency_record.response_etag is 'Header ETag of the stored response, null when it had none.';
comment on column pgidem.idempotency_record.response_body is 'Body of the stored response, byte for byte, null when it had none.';
comment on column pgidem.idempotency_record.one_time_secret is
  'True when the response held a secret that is shown once: nothing but its status is stored.';
comment on column pgidem.idempotency_record.created_at is 'When the claim was made.';
comment on column pgidem.idempotency_record.finished_at is 'When the response was stored, null while the operation runs.';
comment on column pgidem.idempotency_record.expires_at is 'When the cleanup may delete the row: never earlier than live_until.';
comment on constraint idempotency_record_pkey on pgidem.idempotency_record is 'The claim: one row per user and key.';
comment on constraint idempotency_record_user_id_check on pgidem.idempotency_record is '1 to 255 characters without control characters, not all blank.';
comment on constraint idempotency_record_idem_key_check on pgidem.idempotency_record is '1 to 255 characters from 0x21 to 0x7E, with spaces inside.';
comment on constraint idempotency_record_state_check on pgidem.idempotency_record is 'A row is in progress, or completed with a status and an instant.';
comment on constraint idempotency_record_expires_at_check on pgidem.idempotency_record is 'The cleanup never comes while the row lives.';
comment on index pgidem.idempotency_record_expires_at_idx is 'Lets the cleanup find expired rows without reading live ones.';

-- +goose StatementBegin
do $$
begin
  if to_regtype('pgidem.claim_result') is null then
    create type pgidem.claim_result as (
      outcome text,
      token bigint,
      retry_after integer,
      live_until timestamptz,
      response_status integer,
      content_type text,
      location text,
      etag text,
      response_body bytea,
      one_time_secret boolean
    );
  end if;
end
$$;
-- +goose StatementEnd
comment on type pgidem.claim_result is 'What idem_claim, idem_claim_committed and idem_finish return.';
comment on column pgidem.claim_result.outcome is 'claimed, replay, reused or in_progress; stored from idem_finish. Never null.';
comment on column pgidem.claim_result.token is 'Proves the claim to idem_finish and its like; null unless the outcome is claimed.';
comment on column pgidem.claim_result.retry_after is 'Seconds after which a repeat makes sense; with in_progress.';
comment on column pgidem.claim_result.live_until is
  'End of the lease with claimed and in_progress, of the retention else; null while another transaction claims the key.';
comment on column pgidem.claim_result.response_status is 'HTTP status of the stored response; with replay and stored.';
comment on column pgidem.claim_result.content_type is 'Header Content-Type of the stored response; with replay and stored.';
comment on column pgidem.claim_result.location is 'Header Location of the stored response; with replay and stored.';
comment on column pgidem.claim_result.etag is 'Header ETag of the stored response; with replay and stored.';
comment on column pgidem.claim_result.response_body is 'Body of the stored response; with replay and stored.';
comment on column pgidem.claim_result.one_time_secret is 'True when the stored response held a secret that is shown once and was not stored.';

-- +goose StatementBegin
do $$ begin perform set_config('search_path', current_setting('pgidem.search_path'), true); end $$;
-- +goose StatementEnd
