begin;
-- What the functions refuse with 22023 before they write, for those who write the table themselves.
\ir ../_record.psql
select plan(24);

prepare put(text, text, text, smallint, timestamptz, interval) as
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, response_status, finished_at,
  live_until, expires_at, retention, created_at)
values ($1, $2, :'fingerprint', 1, 1, $3, $4, $5, now(), now() + $6, '1 day', now());

select throws_ok(format('execute put(%L, %L, ''in_progress'', null, null, ''0'')', user_id, key), '23514',
  'new row for relation "idempotency_record" violates check constraint "idempotency_record_' || refused_by || '_check"', what)
from (values
  ('an empty user', '', 'k', 'user_id'),
  ('a user of blanks', '   ', 'k', 'user_id'),
  ('a user of 256 characters', repeat('u', 256), 'k', 'user_id'),
  ('a line break in a user', E'u\nu', 'k', 'user_id'),
  ('DEL in a user', E'u\x7f', 'k', 'user_id'),
  ('a C1 control character in a user', U&'u\0085', 'k', 'user_id'),
  ('an empty key', 'u', '', 'idem_key'),
  ('a key of 256 characters', 'u', repeat('k', 256), 'idem_key'),
  ('a blank before a key', 'u', ' k', 'idem_key'),
  ('a blank behind a key', 'u', 'k ', 'idem_key'),
  ('a line break behind a key', 'u', E'k\n', 'idem_key'),
  ('a tab in a key', 'u', E'k\tk', 'idem_key'),
  ('a letter beyond ASCII in a key', 'u', U&'k\00e9', 'idem_key')
) v (what, user_id, key, refused_by);

select lives_ok(format('execute put(%L, %L, ''in_progress'', null, null, ''0'')', user_id, key), what)
from (values
  ('the longest user and key', repeat(U&'\+01F600', 255), repeat('~', 255)),
  ('one character each', 'u', '!'),
  ('blanks inside', 'u u', 'k  k'),
  ('letters beyond ASCII in a user', U&'Zo\00eb', 'k')
) v (what, user_id, key);

select throws_ok(format('execute put(''s'', ''k'', %L, %L, %L, %L)', state, status, finished, later), '23514', null, what)
from (values
  ('an unknown state', 'failed', null, null, '0'),
  ('completed without a status', 'completed', null, now()::text, '0'),
  ('completed without an instant', 'completed', '200', null, '0'),
  ('neither', 'completed', null, null, '0'),
  ('an end for the cleanup before the end of its life', 'in_progress', null, null, '-1 microsecond')
) v (what, state, status, finished, later);
select lives_ok($$execute put('s', 'in progress', 'in_progress', null, null, '0')$$, 'in progress');
select lives_ok($$execute put('s', 'completed', 'completed', '200', now(), '0')$$, 'completed');

select * from finish();
rollback;
