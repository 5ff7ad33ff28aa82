begin;
-- Case 74, as for idempotency_keys.
select plan(2);

select is(
  (select reloptions from pg_class where oid = 'pgidem.idempotency_record'::regclass),
  array['autovacuum_vacuum_scale_factor=0.02', 'vacuum_truncate=false'],
  'vacuumed when a fiftieth is dead, without a lock that nobody shares'
);
select is(
  (select t.reloptions from pg_class c join pg_class t on t.oid = c.reltoastrelid where c.oid = 'pgidem.idempotency_record'::regclass),
  array['vacuum_truncate=false'],
  'and so the bodies'
);

select * from finish();
rollback;
