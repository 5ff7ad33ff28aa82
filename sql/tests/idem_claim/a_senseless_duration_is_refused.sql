begin;
\ir ../_record.psql
select plan(20);

prepare lease(interval) as select pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_lease => $1);
prepare retention(interval) as select pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_retention => $1);
prepare wait(interval) as select pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_lock_timeout => $1);

select throws_ok(format('execute %s(%L)', parameter, value), '22023', 'invalid duration', concat_ws(' ', parameter, value))
from unnest(array['lease', 'retention', 'wait']) parameter
cross join unnest(array['0', '-1 second', '1 month', '2 years', '3652 days 12:00:00.000001', '1 month -30 days']) value;
select is_empty('select from pgidem.idempotency_record where ' || :'this_record', 'nothing is written');

-- What is recorded answers without a look at them: it has no use for them.
select :claim_key \gset
select is((pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '0', '0', '0')).outcome, 'in_progress', 'a repeat');

select * from finish();
rollback;
