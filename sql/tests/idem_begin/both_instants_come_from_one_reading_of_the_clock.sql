begin;
\ir ../_setup.psql
\ir ../_alone.psql
select plan(2);

-- A clock that moves one hour with each reading.
create temporary sequence hours;
create or replace function pgidem._now() returns timestamptz language sql volatile parallel safe
return '2026-01-01 00:00+00'::timestamptz + nextval('hours') * interval '1 hour';

select is(
  expires_at - created_at,
  interval '00:10:00',
  'the caller is told created_at and the TTL after it'
)
from pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '10 minutes');
select is(expires_at - created_at, interval '00:10:00', 'which is what is stored')
from pgidem.idempotency_keys where :this_key;

select * from finish();
rollback;
