begin;
select plan(1);

select is(
  (
    select string_agg(pg_get_indexdef(x.indexrelid), E'\n' order by x.indexrelid::regclass::text)
    from pg_index x
    where x.indrelid = 'pgidem.idempotency_keys'::regclass
  ),
  concat_ws(E'\n',
    'CREATE INDEX idempotency_keys_expires_at_idx ON pgidem.idempotency_keys USING btree (expires_at)',
    'CREATE UNIQUE INDEX idempotency_keys_pkey ON pgidem.idempotency_keys USING btree (principal_id, key)'),
  'the primary key and expires_at'
);

select * from finish();
rollback;
