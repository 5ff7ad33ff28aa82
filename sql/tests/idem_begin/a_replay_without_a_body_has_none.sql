begin;
-- Case 30.
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
select pgidem.idem_complete(:'principal', :'key', 204, null) \gset
select results_eq(
  'select outcome, response_status, response_body from ' || :'begin_key',
  $$values ('replay', 204, null)$$,
  'replay 204, body null'
);

select gen_random_uuid() as accepted \gset
select pgidem.idem_begin(:'principal', :'accepted', 'pay', :'fingerprint') \gset
select pgidem.idem_complete(:'principal', :'accepted', 202, null) \gset
select results_eq(
  format('select outcome, response_status, response_body from pgidem.idem_begin(%L, %L, %L, %L)', :'principal', :'accepted', 'pay', :'fingerprint'),
  $$values ('replay', 202, null)$$,
  'replay 202, body null'
);

select * from finish();
rollback;
