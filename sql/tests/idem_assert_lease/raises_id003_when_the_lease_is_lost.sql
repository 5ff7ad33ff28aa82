begin;
-- C4.
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
\ir ../_diagnose.psql
select plan(8);

set local test.now = '2026-03-01 12:00+00';
select throws_ok('execute assert_lease(1)', 'ID003', 'the lease is lost', 'nothing is claimed');
savepoint another_transaction;
select token as a from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes') \gset
release savepoint another_transaction;
set local test.now = '2026-03-01 12:09:59.999999+00';
select lives_ok(format('execute assert_lease(%s)', :a), 'alive until its last microsecond');
set local test.now = '2026-03-01 12:10+00';
select throws_ok(format('execute assert_lease(%s)', :a), 'ID003', 'the lease is lost', 'over at the very instant');
savepoint another_transaction;
select token as b from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes') \gset
release savepoint another_transaction;
select throws_ok(format('execute assert_lease(%s)', :a), 'ID003', 'the lease is lost', 'taken over');
select lives_ok(format('execute assert_lease(%s)', :b), 'the successor has it');
execute finish(:b, 'done') \gset
select throws_ok(format('execute assert_lease(%s)', :b), 'ID003', 'the lease is lost', 'finished');
select pg_temp.diagnose(format('execute assert_lease(%s)', :b)) as e \gset
select is(:'e'::jsonb ->> 'detail', 'The lease has ended, or another caller has the key, or the operation was finished.', 'the detail tells how a lease gets lost');
select is(:'e'::jsonb ->> 'hint', 'Roll back what was done under this claim, and answer with what idem_claim says now.', 'the hint what to do');

select * from finish();
rollback;
