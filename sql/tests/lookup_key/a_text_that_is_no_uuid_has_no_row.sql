begin;
\ir ../_setup.psql
select plan(4);

select :begin_key, :complete_key \gset
select is_empty(format('select * from pgidem.lookup_key(%L, %L)', user_id, key), what)
from (values
  ('a user by name', 'alice', :'key'),
  ('a key in words', :'principal', 'order-7'),
  ('empty', '', ''),
  ('a UUID in another form', :'principal', replace(:'key', '-', ''))
) v (what, user_id, key);

select * from finish();
rollback;
