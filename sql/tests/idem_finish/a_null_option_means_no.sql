begin;
\ir ../_record.psql
select plan(2);

select token from :claim_key \gset
select results_eq(
  format('select outcome, one_time_secret, response_body from pgidem.idem_finish(%L, %L, %s, 201, null, null, null, %L, null, null)', :'user_id', :'key', :token, 'done'),
  $$values ('stored', false, 'done'::bytea)$$,
  'no secret'
);
select is((pgidem.idem_finish(:'user_id', :'key', :token - 1, 200, null, null, null, null, null, null)).outcome, 'in_progress', 'nothing required');

select * from finish();
rollback;
