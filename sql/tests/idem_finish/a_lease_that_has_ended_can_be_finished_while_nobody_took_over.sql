begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(3);

set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
release savepoint another_transaction;
set local test.now = '2026-03-01 18:00+00';
execute finish(:token, 'done') \gset
select is(:'outcome'::text, 'stored', 'stored');
select is(:'live_until'::timestamptz, '2026-03-02 18:00+00', 'for the whole retention');
select is((:claim_key).outcome, 'replay', 'and replayed');

select * from finish();
rollback;
