begin;
-- Case 74: dead rows come steadily, and a vacuum at the default of a fifth of the table would come late. The fillfactor stays at
-- 100: nearly all updates are HOT with it, and less would only make the table larger.
select plan(2);

select is(
  (select reloptions from pg_class where oid = 'pgidem.idempotency_keys'::regclass),
  array['autovacuum_vacuum_scale_factor=0.02', 'vacuum_truncate=false'],
  'vacuumed when a fiftieth is dead, without a lock that nobody shares'
);
select is(
  (select t.reloptions from pg_class c join pg_class t on t.oid = c.reltoastrelid where c.oid = 'pgidem.idempotency_keys'::regclass),
  array['vacuum_truncate=false'],
  'and so the bodies'
);

select * from finish();
rollback;
