begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(8);

set local test.now = '2026-03-01 12:00+00';
select is(pgidem.idem_renew(:'user_id', :'key', 1), false, 'nothing is claimed');
savepoint another_transaction;
select token as a from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes') \gset
release savepoint another_transaction;
set local test.now = '2026-03-01 12:10+00';
create temporary table before as select k.ctid::text as place, k.* from pgidem.idempotency_record k where :this_record;
select is(pgidem.idem_renew(:'user_id', :'key', :a), false, 'over at the very instant');
select results_eq('select k.ctid::text as place, k.* from pgidem.idempotency_record k where ' || :'this_record', 'table before', 'nothing is written');
savepoint another_transaction;
select token as b from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes') \gset
release savepoint another_transaction;
select is(pgidem.idem_renew(:'user_id', :'key', :a, '1 hour'), false, 'taken over');
select is(pgidem.idem_renew(:'user_id', :'key', :b, '1 hour'), true, 'the successor renews');
select is(pgidem.idem_renew(:'user_id', 'another', :b, '1 hour'), false, 'another key');
execute finish(:b, 'done') \gset
select is(pgidem.idem_renew(:'user_id', :'key', :b, '2 days'), false, 'finished');
select is(live_until, '2026-03-02 12:10+00', 'which keeps its end') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
