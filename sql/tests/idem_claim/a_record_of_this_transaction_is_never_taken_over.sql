begin;
-- L2: it would be claimed twice in one transaction.
\ir ../_record.psql
\ir ../_clock.psql
select plan(6);

set local test.now = '2026-03-01 12:00+00';
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '1 minute', '1 minute') \gset
set local test.now = '2026-03-01 12:01+00';
select results_eq('select outcome, token, retry_after from ' || :'claim_key', $$values ('in_progress', null::bigint, 1)$$, 'in progress');
savepoint s;
select is((:claim_key).outcome, 'in_progress', 'also below a savepoint');
rollback to savepoint s;
execute finish(:token, 'done') \gset
select is(:'outcome'::text, 'stored', 'it can be finished');
select is((:claim_key).outcome, 'replay', 'replayed');
set local test.now = '2026-03-01 12:02+00';
select is((:claim_key).outcome, 'replay', 'also when its life is over');
select is((:claim_other_request).outcome, 'reused', 'and no other request gets it');

select * from finish();
rollback;
