begin;
\ir ../_record.psql
\ir ../_clock.psql
select plan(3);

set local test.now = '2026-03-01 12:00+00';
prepare ends as select live_until - created_at, retention, expires_at - live_until from pgidem.idempotency_record where :this_record;
savepoint s;
select :claim_key \gset
select results_eq('ends', $$values (interval '00:10:00', interval '24:00:00', interval '24:00:00')$$, '10 minutes and 24 hours');
rollback to savepoint s;
update pgidem.settings set lease = '3 days', retention = '90 minutes';
savepoint s;
select :claim_key \gset
select results_eq('ends', $$values (interval '72:00:00', interval '01:30:00', interval '01:30:00')$$, 'the settings');
rollback to savepoint s;
select pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '1 minute', '2 minutes') \gset
select results_eq('ends', $$values (interval '00:01:00', interval '00:02:00', interval '00:02:00')$$, 'a parameter wins');

select * from finish();
rollback;
