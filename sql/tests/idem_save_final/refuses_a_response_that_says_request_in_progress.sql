begin;
\ir ../_setup.psql
select plan(5);

prepare save(integer, jsonb) as
select (pgidem.idem_save_final(:'principal', gen_random_uuid(), 'pay', :'fingerprint', $1, $2)).outcome;

select throws_ok(
  $$execute save(409, '{"code": "request_in_progress"}')$$,
  '22023', 'a response that says request_in_progress is not final', 'a 409 with that code'
);
select results_eq($$execute save(409, '{"code": "conflict"}')$$, array['stored'], 'a 409 with another code is stored');
select results_eq($$execute save(409, null)$$, array['stored'], 'a 409 without a body is stored');
select results_eq($$execute save(409, '["code", "request_in_progress"]')$$, array['stored'], 'a 409 that is no object is stored');
select results_eq($$execute save(422, '{"code": "request_in_progress"}')$$, array['stored'], 'another status is stored');

select * from finish();
rollback;
