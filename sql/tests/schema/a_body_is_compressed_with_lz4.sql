begin;
select plan(1);

select set_eq(
  $$
    select attrelid::regclass::text, attcompression::text
    from pg_attribute
    where attrelid in ('pgidem.idempotency_keys'::regclass, 'pgidem.idempotency_record'::regclass)
      and attname = 'response_body'
  $$,
  $$ values ('pgidem.idempotency_keys', 'l'), ('pgidem.idempotency_record', 'l') $$,
  'bodies of both tables'
);

select * from finish();
rollback;
