begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(3);

set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes') \gset
release savepoint another_transaction;
set local test.now = '2026-03-01 12:09:59.999999+00';
select is((:claim_key).outcome, 'in_progress', 'until its last microsecond');
select is((:claim_other_request).outcome, 'reused', 'for another request too');
set local test.now = '2026-03-01 12:10+00';
select is((:claim_key).outcome, 'claimed', 'taken over when live_until equals now');

select * from finish();
rollback;
