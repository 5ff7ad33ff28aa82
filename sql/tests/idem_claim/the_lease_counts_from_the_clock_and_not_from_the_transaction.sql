begin;
-- Case 20: made late in a long transaction, a short lease must not be over when it begins.
\ir ../_record.psql
select plan(3);

select clock_timestamp() as before \gset
select ok(live_until between :'before'::timestamptz + interval '2 seconds' and clock_timestamp() + interval '2 seconds', 'the lease')
from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_lease => '2 seconds');
select ok(:'before'::timestamptz > now() and created_at > now(), 'which began after the transaction') from pgidem.idempotency_record where :this_record;
select is((:claim_key).outcome, 'in_progress', 'it lives');

select * from finish();
rollback;
