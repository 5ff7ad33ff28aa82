begin;
-- Whatever its body says: only idem_complete stores the mark.
\ir ../_setup.psql
select plan(2);

select results_eq(
  format('select outcome, one_time_secret from pgidem.idem_save_final(%L, %L, %L, %L, 404, %L)',
    :'principal', :'key', 'pay', :'fingerprint', '{"one_time_secret": true}'),
  $$values ('stored', false)$$,
  'stored'
);
select results_eq(
  'select outcome, response_body, one_time_secret from ' || :'begin_key',
  $$values ('replay', '{"one_time_secret": true}', false)$$,
  'and replayed'
);

select * from finish();
rollback;
