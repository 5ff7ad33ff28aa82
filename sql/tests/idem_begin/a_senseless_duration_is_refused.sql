begin;
\ir ../_setup.psql
select plan(14);

prepare ttl(interval) as select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => $1);
prepare wait(interval) as select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_lock_timeout => $1);

select throws_ok(format('execute %s(%L)', parameter, value), '22023', 'invalid duration', concat_ws(' ', parameter, value))
from unnest(array['ttl', 'wait']) parameter
cross join unnest(array['0', '-1 second', '1 month', '2 years', '3652 days 12:00:00.000001', '1 month -30 days']) value;
select is_empty('select from pgidem.idempotency_keys where ' || :'this_key', 'nothing is written');

-- What is recorded answers without a look at them: a replay has no use for them.
select :begin_key \gset
select :complete_key \gset
select is((pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', '0', '0')).outcome, 'replay', 'a replay');

select * from finish();
rollback;
