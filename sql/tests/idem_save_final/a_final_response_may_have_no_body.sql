begin;
-- Case 30.
\ir ../_setup.psql
select plan(2);

select results_eq(
  format('select outcome, response_status, response_body from pgidem.idem_save_final(%L, %L, %L, %L, 410, null)',
    :'principal', :'key', 'pay', :'fingerprint'),
  $$values ('stored', 410, null)$$,
  'stored'
);
select results_eq(
  'select outcome, response_status, response_body from ' || :'begin_key',
  $$values ('replay', 410, null)$$,
  'and replayed'
);

select * from finish();
rollback;
