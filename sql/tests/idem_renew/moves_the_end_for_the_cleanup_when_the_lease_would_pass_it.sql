begin;
-- M3: with a fixed end a claim that is renewed again and again would be cleaned while it lives.
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(6);

prepare ends as select live_until, expires_at from pgidem.idempotency_record where :this_record;
set local test.now = '2000-03-01 12:00:00+00';
savepoint another_transaction;
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '1 second', '1 second') \gset
release savepoint another_transaction;
set local test.now = '2000-03-01 12:00:00.9+00';
savepoint another_transaction;
execute renew(:token, '1 second') \gset
release savepoint another_transaction;
select results_eq('ends', $$values ('2000-03-01 12:00:01.9+00'::timestamptz, '2000-03-01 12:00:02+00'::timestamptz)$$, 'not yet');
set local test.now = '2000-03-01 12:00:01.8+00';
savepoint another_transaction;
execute renew(:token, '1 second') \gset
release savepoint another_transaction;
select results_eq('ends', $$values ('2000-03-01 12:00:02.8+00'::timestamptz, '2000-03-01 12:00:03.8+00'::timestamptz)$$, 'moved, with room for the retention');
set local test.now = '2000-03-01 12:00:02.5+00';
select is(pgidem.cleanup_batch(), 0, 'the cleanup leaves it, after the end that it had first');
select results_eq(format('execute renew(%s, %L)', :token, '1 second'), array[true], 'it lives');
set local test.now = '2000-03-01 12:00:04.5+00';
select results_eq(format('execute renew(%s, %L)', :token, '1 second'), array[false], 'until nobody renews it');
select is(pgidem.cleanup_batch(), 1, 'then it goes');

select * from finish();
rollback;
