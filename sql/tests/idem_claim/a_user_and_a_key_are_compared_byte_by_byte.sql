begin;
\ir ../_record.psql
select plan(6);

select is((pgidem.idem_claim(user_id, key, :'fingerprint')).outcome, 'claimed', what)
from (values
  ('a user', 'Zoe' || :'user_id', 'order 1'),
  ('another case', 'zoe' || :'user_id', 'order 1'),
  ('a blank behind a user', 'Zoe' || :'user_id' || ' ', 'order 1'),
  ('another case of a key', 'Zoe' || :'user_id', 'Order 1'),
  ('two code points of one look', U&'Zoe\0301' || :'user_id', 'order 1'),
  ('one of them', U&'Zo\00e9' || :'user_id', 'order 1')
) v (what, user_id, key);

select * from finish();
rollback;
