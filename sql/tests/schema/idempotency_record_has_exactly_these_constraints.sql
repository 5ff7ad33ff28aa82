begin;
select plan(2);

-- PostgreSQL 18 lists not null here too.
select is(
  (
    select string_agg(concat_ws(' ', c.conname, pg_get_constraintdef(c.oid)) collate "default", E'\n' order by c.conname)
    from pg_constraint c
    where c.conrelid = 'pgidem.idempotency_record'::regclass
      and c.contype <> 'n'
  ),
  concat_ws(E'\n',
    'idempotency_record_expires_at_check CHECK ((expires_at >= live_until))',
    'idempotency_record_idem_key_check CHECK (((char_length(idem_key) >= 1) AND (char_length(idem_key) <= 255) AND (idem_key ~ ''^[!-~]([ -~]*[!-~])?$''::text)))',
    'idempotency_record_pkey PRIMARY KEY (user_id, idem_key)',
    'idempotency_record_state_check CHECK (((state = ''in_progress''::text) OR ((state = ''completed''::text) AND (response_status IS NOT NULL) AND (finished_at IS NOT NULL))))',
    'idempotency_record_user_id_check CHECK (((char_length(user_id) >= 1) AND (char_length(user_id) <= 255) AND (user_id ~ ''[^ ]''::text) AND (user_id !~ ''[\u0001-\u001f\u007f-\u009f]''::text)))'),
  'names and definitions: no user is registered anywhere, so there is no foreign key'
);
select is_empty(
  $$
    select conname
    from pg_constraint
    where conrelid = 'pgidem.idempotency_record'::regclass
      and not convalidated
  $$,
  'all are validated'
);

select * from finish();
rollback;
