begin;
\ir ../_record.psql
select plan(14);

select token from :claim_key \gset
create temporary table before as select k.xmax::text as lock, k.ctid::text as place, k.* from pgidem.idempotency_record k where :this_record;
select throws_ok(format('select pgidem.idem_renew(%L, %L, %L)', user_id, key, token), '22023', 'invalid argument', what)
from (values
  ('no user', null, :'key', :'token'),
  ('an empty user', '', :'key', :'token'),
  ('a blank user', ' ', :'key', :'token'),
  ('no key', :'user_id', null, :'token'),
  ('an empty key', :'user_id', '', :'token'),
  ('a key of 256 characters', :'user_id', repeat('k', 256), :'token'),
  ('no token', :'user_id', :'key', null)
) v (what, user_id, key, token);
select throws_ok(format('execute renew(%s, %L)', :token, value), '22023', 'invalid duration', 'a lease of ' || value)
from unnest(array['0', '-1 second', '1 month', '2 years', '3652 days 12:00:00.000001', '1 month -30 days']) value;
select results_eq('select k.xmax::text as lock, k.ctid::text as place, k.* from pgidem.idempotency_record k where ' || :'this_record', 'table before', 'nothing is written or locked');

select * from finish();
rollback;
