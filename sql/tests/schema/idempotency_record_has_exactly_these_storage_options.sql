begin;
-- Case 74, as for idempotency_keys.
select plan(1);

select is(
  (select reloptions from pg_class where oid = 'pgidem.idempotency_record'::regclass),
  array['autovacuum_vacuum_scale_factor=0.02'],
  'vacuumed when a fiftieth is dead'
);

select * from finish();
rollback;
