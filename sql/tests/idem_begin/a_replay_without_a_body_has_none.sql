begin;
-- Case 30.
\ir ../_setup.psql
select plan(1);

select :begin_key \gset
select pgidem.idem_complete(:'principal', :'key', 204, null) \gset
select results_eq(
  'select outcome, response_status, response_body from ' || :'begin_key',
  $$values ('replay', 204, null)$$,
  'replay 204, body null'
);

select * from finish();
rollback;
