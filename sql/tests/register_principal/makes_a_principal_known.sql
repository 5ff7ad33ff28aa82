begin;
\ir ../_setup.psql
select plan(1);

select pgidem.register_principal(:'principal') \gset
select results_eq(
  format('select id, created_at from pgidem.principals where id = %L', :'principal'),
  format('values (%L::uuid, now())', :'principal'),
  'one row'
);

select * from finish();
rollback;
