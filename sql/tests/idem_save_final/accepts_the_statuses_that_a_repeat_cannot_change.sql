begin;
\ir ../_setup.psql
select plan(1);

select set_eq(
  format(
    'select status from generate_series(400, 499) status where (pgidem.idem_save_final(%L, gen_random_uuid(), %L, %L, status, %L)).outcome = %L',
    :'principal', 'pay', :'fingerprint', '{}', 'stored')
  || ' and status not in (401, 408, 425, 428, 429)',
  'select status from generate_series(400, 499) status where status not in (401, 408, 425, 428, 429)',
  '400 to 499 without 401, 408, 425, 428 and 429'
);

select * from finish();
rollback;
