begin;
\ir ../_record.psql
select plan(8);

select token from :claim_key \gset
create temporary table before as select k.xmax::text as lock, k.ctid::text as place, k.* from pgidem.idempotency_record k where :this_record;
select throws_ok(format('select pgidem.idem_release(%L, %L, %L)', user_id, key, token), '22023', 'invalid argument', what)
from (values
  ('no user', null, :'key', :'token'),
  ('an empty user', '', :'key', :'token'),
  ('a blank user', ' ', :'key', :'token'),
  ('no key', :'user_id', null, :'token'),
  ('an empty key', :'user_id', '', :'token'),
  ('a key of 256 characters', :'user_id', repeat('k', 256), :'token'),
  ('no token', :'user_id', :'key', null)
) v (what, user_id, key, token);
select results_eq('select k.xmax::text as lock, k.ctid::text as place, k.* from pgidem.idempotency_record k where ' || :'this_record', 'table before', 'nothing is written or locked');

select * from finish();
rollback;
