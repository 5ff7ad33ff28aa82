begin;
-- C3 and D2.
\ir ../_setup.psql
select plan(3);

prepare save_other as
select outcome, response_status, response_body, resource_id
from pgidem.idem_save_final(:'principal', :'key', 'pay', :'other_fingerprint', 404, '{"code": "not_found"}');

select :begin_key \gset
select :complete_key \gset
create temporary table before as
select k.xmin::text as version, k.cmin::text as command, k.ctid::text as place, k.* from pgidem.idempotency_keys k where :this_key;

select results_eq(
  'select outcome, response_status, response_body from ' || :'save_final_key',
  $$values ('replay', 201, '{"amount": 1}')$$,
  'replay of what the other run stored'
);
select results_eq('save_other', $$values ('reused', null::integer, null, null::uuid)$$, 'nothing of it for another request');
select results_eq(
  'select k.xmin::text as version, k.cmin::text as command, k.ctid::text as place, k.* from pgidem.idempotency_keys k where ' || :'this_key',
  'table before',
  'the row is the same'
);

select * from finish();
rollback;
