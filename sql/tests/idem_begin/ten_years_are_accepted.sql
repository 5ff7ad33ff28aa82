begin;
\ir ../_setup.psql
select plan(2);

select is(expires_at - created_at, interval '87660:00:00', 'as TTL')
from pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '3652 days 12 hours');
select is(outcome, 'claimed', 'as wait')
from pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint', p_lock_timeout => '3652 days 12 hours');

select * from finish();
rollback;
