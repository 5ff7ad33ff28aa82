begin;
\ir ../_setup.psql
select plan(1);

select gen_random_uuid() as other_key, gen_random_uuid() as other_principal \gset
select :begin_key \gset
select pgidem.idem_begin(:'principal', :'other_key', 'pay', :'fingerprint') \gset
select pgidem.idem_begin(:'other_principal', :'key', 'pay', :'fingerprint') \gset
select :complete_key \gset
select set_eq(
  format('select principal_id, key, state from pgidem.idempotency_keys where principal_id in (%L, %L)', :'principal', :'other_principal'),
  format($$values (%1$L::uuid, %2$L::uuid, 'completed'), (%1$L, %3$L, 'in_progress'), (%4$L, %2$L, 'in_progress')$$,
    :'principal', :'key', :'other_key', :'other_principal'),
  'one row is completed'
);

select * from finish();
rollback;
