begin;
-- A lease that was over, or was renewed beyond it.
\ir ../_record.psql
\ir ../_clock.psql
select plan(2);

prepare ends as select live_until, expires_at from pgidem.idempotency_record where :this_record;
set local test.now = '2026-03-01 12:00+00';
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 hour') \gset
savepoint s;
set local test.now = '2026-03-01 12:10+00';
execute finish(:token, 'done') \gset
select results_eq('ends', $$values ('2026-03-01 13:10+00'::timestamptz, '2026-03-01 13:10+00'::timestamptz)$$, 'at the end of the lease it stays');
rollback to savepoint s;
set local test.now = '2026-03-01 12:10:01+00';
execute finish(:token, 'done') \gset
select results_eq('ends', $$values ('2026-03-01 13:10:01+00'::timestamptz, '2026-03-01 13:10:01+00'::timestamptz)$$, 'a second later it moves along');

select * from finish();
rollback;
