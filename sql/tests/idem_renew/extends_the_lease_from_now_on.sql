begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(9);

prepare ends as select live_until, expires_at from pgidem.idempotency_record where :this_record;
set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
release savepoint another_transaction;
set local test.now = '2026-03-01 12:05+00';
select results_eq(format('execute renew(%s, %L)', :token, '15 minutes'), array[true], 'renewed');
select results_eq('ends', $$values ('2026-03-01 12:20+00'::timestamptz, '2026-03-02 12:10+00'::timestamptz)$$, 'counted from now; the cleanup comes as before');
create temporary table before as select k.ctid::text as place, k.* from pgidem.idempotency_record k where :this_record;
select results_eq(format('execute renew(%s, %L)', :token, '5 minutes'), array[true], 'less than there is');
select results_eq('select k.ctid::text as place, k.* from pgidem.idempotency_record k where ' || :'this_record', 'table before', 'shortens nothing and writes nothing');
select results_eq(format('execute renew(%s, null)', :token), array[true], 'without a lease');
set local test.now = '2026-03-01 12:15+00';
select results_eq(format('execute renew(%s, null)', :token), array[true], 'that of the settings');
select results_eq('ends', $$values ('2026-03-01 12:25+00'::timestamptz, '2026-03-02 12:10+00'::timestamptz)$$, 'which is 10 minutes');
update pgidem.settings set lease = '1 hour';
select results_eq(format('execute renew(%s, null)', :token), array[true], 'another setting');
select results_eq('ends', $$values ('2026-03-01 13:15+00'::timestamptz, '2026-03-02 12:10+00'::timestamptz)$$, 'is an hour');

select * from finish();
rollback;
