begin;
select plan(2);

-- PostgreSQL 18 lists not null here too.
select is(
  (
    select string_agg(concat_ws(' ', c.conname, pg_get_constraintdef(c.oid)) collate "default", E'\n' order by c.conname)
    from pg_constraint c
    where c.conrelid = 'pgidem.idempotency_keys'::regclass
      and c.contype <> 'n'
  ),
  concat_ws(E'\n',
    'idempotency_keys_pkey PRIMARY KEY (principal_id, key)',
    'idempotency_keys_principal_id_fkey FOREIGN KEY (principal_id) REFERENCES pgidem.principals(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED',
    'idempotency_keys_state_check CHECK ((state = ANY (ARRAY[''in_progress''::text, ''completed''::text])))'),
  'names and definitions'
);
select is_empty(
  $$
    select conname
    from pg_constraint
    where conrelid = 'pgidem.idempotency_keys'::regclass
      and not convalidated
  $$,
  'all are validated'
);

select * from finish();
rollback;
