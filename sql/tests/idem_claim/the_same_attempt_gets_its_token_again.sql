begin;
-- H9: the answer to the first call was lost.
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(9);

select gen_random_uuid() as attempt \gset
prepare attempt(uuid, bytea) as select outcome, token, live_until from pgidem.idem_claim(:'user_id', :'key', $2, '10 minutes', p_attempt => $1);

set local test.now = '2026-03-01 12:00+00';
savepoint another_transaction;
execute attempt(:'attempt', :'fingerprint') \gset
release savepoint another_transaction;
set local test.now = '2026-03-01 12:05+00';
select results_eq(format('execute attempt(%L, %L)', :'attempt', :'fingerprint'),
  format($$values ('claimed', %s::bigint, '2026-03-01 12:10+00'::timestamptz)$$, :token), 'the same call: token and lease as before');
select results_eq(format('execute attempt(%L, %L)', gen_random_uuid(), :'fingerprint'),
  $$values ('in_progress', null::bigint, '2026-03-01 12:10+00'::timestamptz)$$, 'another one');
select is((:claim_key).outcome, 'in_progress', 'one without a name');
select is(outcome, 'reused', 'the same name for another request')
from pgidem.idem_claim(:'user_id', :'key', :'other_fingerprint', p_attempt => :'attempt');

savepoint s;
execute finish(:token, 'done') \gset
select is(outcome, 'replay', 'finished: the response') from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_attempt => :'attempt');
rollback to savepoint s;

set local test.now = '2026-03-01 12:10+00';
savepoint another_transaction;
select token as new_token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', p_attempt => :'attempt') \gset
release savepoint another_transaction;
select cmp_ok(:new_token::bigint, '>', :token::bigint, 'after its lease: a new claim');
select is(token, :new_token::bigint, 'whose token it gets from then on')
from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_attempt => :'attempt');

-- A claim without a name is nobody's to ask for again.
savepoint another_transaction;
select pgidem.idem_claim(:'user_id', 'unnamed', :'fingerprint') \gset
release savepoint another_transaction;
select is((pgidem.idem_claim(:'user_id', 'unnamed', :'fingerprint')).outcome, 'in_progress', 'without a name');
select is((pgidem.idem_claim(:'user_id', 'unnamed', :'fingerprint', p_attempt => :'attempt')).outcome, 'in_progress', 'nor with one');

select * from finish();
rollback;
