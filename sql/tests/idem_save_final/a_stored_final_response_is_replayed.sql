begin;
\ir ../_setup.psql
select plan(2);

select pgidem.idem_save_final(:'principal', :'key', 'pay', :'fingerprint', 422, '{"b": 1.10, "code": "invalid"}') \gset
select results_eq(
  'select outcome, response_status, response_body from ' || :'begin_key',
  $$values ('replay', 422, '{"b": 1.10, "code": "invalid"}')$$,
  'the same request'
);
select is((:begin_other_request).outcome, 'reused', 'another request');

select * from finish();
rollback;
