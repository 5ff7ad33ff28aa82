begin;
\ir ../_stored_key.psql
select plan(5);

select is(pgidem.forget_key(user_id, key, true), false, what)
from (values
  ('a user by name', 'alice', :'key'),
  ('a key in words', :'principal', 'order-7'),
  ('empty', '', ''),
  ('a UUID in another form', :'principal', replace(:'key', '-', ''))
) v (what, user_id, key);
select is((:begin_key).outcome, 'replay', 'the key stays');

select * from finish();
rollback;
