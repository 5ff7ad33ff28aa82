begin;
-- Case 20: born late in a long transaction, a short-lived row must not be born old.
\ir ../_setup.psql
select plan(4);

select clock_timestamp() as before \gset
select created_at from :begin_key \gset
select ok(:'created_at'::timestamptz > now(), 'created after the transaction began');
select ok(:'created_at'::timestamptz between :'before' and clock_timestamp(), 'at the time of the call');

select ok(expires_at >= :'before'::timestamptz + interval '2 seconds' and expires_at <= clock_timestamp() + interval '2 seconds',
  'with its whole TTL ahead')
from pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint', p_ttl => '2 seconds');
select ok(expires_at >= :'before'::timestamptz + interval '2 seconds' and expires_at <= clock_timestamp() + interval '2 seconds',
  'a final response too')
from pgidem.idem_save_final(:'principal', gen_random_uuid(), 'pay', :'fingerprint', 404, '{}', p_ttl => '2 seconds');

select * from finish();
rollback;
