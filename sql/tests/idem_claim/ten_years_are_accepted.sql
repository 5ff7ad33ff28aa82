begin;
\ir ../_record.psql
select plan(2);

select ok(live_until > clock_timestamp() + interval '87659 hours', 'as lease, retention and wait')
from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '3652 days 12 hours', '3652 days 12 hours', '3652 days 12 hours');
select is(expires_at - live_until, interval '87660:00:00', 'each counted') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
