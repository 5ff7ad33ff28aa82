begin;
select plan(2);

-- With nothing to do it commits nothing, and so can run here.
select lives_ok($$call pgidem.attach_principals('pgidem.principals')$$, 'quiet');
select results_eq(
  $$select conname::text collate "default" from pg_constraint where conrelid = 'pgidem.idempotency_keys'::regclass and contype = 'f'$$,
  array['idempotency_keys_principal_id_fkey'],
  'one foreign key under its name'
);

select * from finish();
rollback;
