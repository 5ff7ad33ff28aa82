begin;
-- live_until is in none: a finish that writes to an index would not be HOT.
select plan(1);

select is(
  (
    select string_agg(pg_get_indexdef(x.indexrelid), E'\n' order by x.indexrelid::regclass::text)
    from pg_index x
    where x.indrelid = 'pgidem.idempotency_record'::regclass
  ),
  concat_ws(E'\n',
    'CREATE INDEX idempotency_record_expires_at_idx ON pgidem.idempotency_record USING btree (expires_at)',
    'CREATE UNIQUE INDEX idempotency_record_pkey ON pgidem.idempotency_record USING btree (user_id, idem_key)'),
  'the primary key and expires_at'
);

select * from finish();
rollback;
