begin;
-- Case 74: dead rows come steadily, and a vacuum at the default of a fifth of the table would come late. The fillfactor stays at
-- 100: nearly all updates are HOT with it, and less would only make the table larger.
select plan(1);

select is(
  (select reloptions from pg_class where oid = 'pgidem.idempotency_keys'::regclass),
  array['autovacuum_vacuum_scale_factor=0.02'],
  'vacuumed when a fiftieth is dead'
);

select * from finish();
rollback;
