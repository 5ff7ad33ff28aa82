begin;
\ir ../_record.psql
select plan(21);

prepare finish_with(text, text, bigint, integer, text, text, text) as
select pgidem.idem_finish($1, $2, $3, $4, $5, $6, $7, 'body');

select token from :claim_key \gset
select throws_ok(format('execute finish_with(%L, %L, %L, %L, %L, %L, %L)', user_id, key, token, status, content_type, location, etag), '22023', 'invalid argument', what)
from (values
  ('no user', null, :'key', :'token', '200', null, null, null),
  ('a blank user', ' ', :'key', :'token', '200', null, null, null),
  ('no key', :'user_id', null, :'token', '200', null, null, null),
  ('a key of 256 characters', :'user_id', repeat('k', 256), :'token', '200', null, null, null),
  ('no token', :'user_id', :'key', null, '200', null, null, null),
  ('no status', :'user_id', :'key', :'token', null, null, null, null),
  ('a status of 199', :'user_id', :'key', :'token', '199', null, null, null),
  ('a status of 600', :'user_id', :'key', :'token', '600', null, null, null),
  ('a status that no smallint holds', :'user_id', :'key', :'token', '65736', null, null, null),
  ('a negative status', :'user_id', :'key', :'token', '-200', null, null, null),
  ('a line break in Content-Type', :'user_id', :'key', :'token', '200', E'text/plain\r\nX: 1', null, null),
  ('a line break in Location', :'user_id', :'key', :'token', '200', null, E'/\nX: 1', null),
  ('a carriage return in ETag', :'user_id', :'key', :'token', '200', null, null, E'"\r"'),
  ('DEL', :'user_id', :'key', :'token', '200', null, E'/\x7f', null)
) v (what, user_id, key, token, status, content_type, location, etag);
select results_eq('select state, response_status from pgidem.idempotency_record where ' || :'this_record',
  $$values ('in_progress', null::smallint)$$, 'nothing is written');

select is((pgidem.idem_finish(:'user_id', status::text, c.token, status, E'text/plain;\tcharset=utf-8', U&'/stra\00dfe', '""', null)).response_status, status, 'status ' || status)
from unnest(array[200, 299, 307, 404, 500, 599]) status, lateral pgidem.idem_claim(:'user_id', status::text, :'fingerprint') c;

select * from finish();
rollback;
