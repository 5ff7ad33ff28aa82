begin;
-- Cases 53 and 56: no empty key, and no user who is everybody.
\ir ../_record.psql
select plan(19);

prepare claim(text, text) as select pgidem.idem_claim($1, $2, :'fingerprint');

select throws_ok(format('execute claim(%L, %L)', user_id, key), '22023', 'invalid argument', what)
from (values
  ('no user', null, 'k'),
  ('an empty user', '', 'k'),
  ('a user of blanks', '   ', 'k'),
  ('a user of 256 characters', repeat('u', 256), 'k'),
  ('a line break in a user', E'u\nu', 'k'),
  ('DEL in a user', E'u\x7f', 'k'),
  ('a C1 control character in a user', U&'u\0085', 'k'),
  ('no key', 'u', null),
  ('an empty key', 'u', ''),
  ('a blank key', 'u', ' '),
  ('a key of 256 characters', 'u', repeat('k', 256)),
  ('a blank before a key', 'u', ' k'),
  ('a blank behind a key', 'u', 'k '),
  ('a line break behind a key', 'u', E'k\n'),
  ('a letter beyond ASCII in a key', 'u', U&'k\00e9')
) v (what, user_id, key);

select is((pgidem.idem_claim(user_id, key, :'fingerprint')).outcome, 'claimed', what)
from (values
  ('the longest user and key, which an index can hold', repeat(U&'\+01F600', 255), (select string_agg(chr(33 + n % 94), '') from generate_series(1, 255) n)),
  ('one character each', 'u', '!'),
  ('blanks inside', 'u u', 'k  k'),
  ('letters beyond ASCII in a user', U&'Zo\00eb', 'k')
) v (what, user_id, key);

select * from finish();
rollback;
