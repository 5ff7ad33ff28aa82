begin;
-- Case 18 and D12.
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(5);

set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
select token as a from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
release savepoint another_transaction;
set local test.now = '2026-03-01 12:10+00';
savepoint another_transaction;
select token as b from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
release savepoint another_transaction;

prepare late as
select * from pgidem.idem_finish(:'user_id', :'key', :a, 500, 'text/html', null, null, 'by A');
select results_eq('late',
  $$values ('in_progress', null::bigint, 1, '2026-03-01 12:20+00'::timestamptz, null::integer, null, null, null, null::bytea, false)$$,
  'while the successor runs');
savepoint another_transaction;
execute finish(:b, 'by B') \gset
release savepoint another_transaction;
create temporary table before as select k.ctid::text as place, k.* from pgidem.idempotency_record k where :this_record;
select results_eq('late',
  $$values ('replay', null::bigint, null::integer, '2026-03-02 12:10+00'::timestamptz, 201, 'text/plain', '/orders/1', '"1"', 'by B'::bytea, false)$$,
  'afterwards');
select results_eq('select k.ctid::text as place, k.* from pgidem.idempotency_record k where ' || :'this_record', 'table before', 'nothing is written');
select throws_ok(format('select pgidem.idem_finish(%L, %L, %s, 500, null, null, null, null, p_require => true)', :'user_id', :'key', :a),
  'ID003', 'the lease is lost', 'required, it is an error');
set local test.now = '2026-03-02 12:10+00';
select is(outcome, 'in_progress', 'not when its retention is over')
from pgidem.idem_finish(:'user_id', :'key', :a, 500, null, null, null, null);

select * from finish();
rollback;
