begin;
-- C4: the answer to the first call was lost. The first response stays.
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(5);

set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
execute finish(:token, 'done') \gset
release savepoint another_transaction;
create temporary table before as select k.ctid::text as place, k.* from pgidem.idempotency_record k where :this_record;
prepare again as
select * from pgidem.idem_finish(:'user_id', :'key', :token, 500, 'text/html', '/elsewhere', '"2"', 'again', p_require => true);

set local test.now = '2026-03-01 13:00+00';
select results_eq('again',
  $$values ('stored', null::bigint, null::integer, '2026-03-02 12:00+00'::timestamptz, 201, 'text/plain', '/orders/1', '"1"', 'done'::bytea, false)$$,
  'stored, with the first response');
select results_eq('select k.ctid::text as place, k.* from pgidem.idempotency_record k where ' || :'this_record', 'table before', 'nothing is written');
set local test.now = '2026-03-05 13:00+00';
select results_eq('again',
  $$values ('stored', null::bigint, null::integer, '2026-03-02 12:00+00'::timestamptz, 201, 'text/plain', '/orders/1', '"1"', 'done'::bytea, false)$$,
  'also when its retention is over, while the row is there');
select is(outcome, 'in_progress', 'another token is not told what it is') from pgidem.idem_finish(:'user_id', :'key', :token + 1, 200, null, null, null, null);
select is(outcome, 'in_progress', 'nor an older one') from pgidem.idem_finish(:'user_id', :'key', :token - 1, 200, null, null, null, null);

select * from finish();
rollback;
