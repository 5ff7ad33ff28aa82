begin;
\ir ../_setup.psql
select plan(1);

select :begin_key \gset
select pgidem.idem_complete(:'principal', :'key', 200, 'null') \gset
select results_eq(
  'select outcome, response_status, response_body from ' || :'begin_key',
  $$values ('replay', 200, 'null')$$,
  'replayed as the text null'
);

select * from finish();
rollback;
