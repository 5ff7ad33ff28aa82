begin;
-- Case 28.
\ir ../_record.psql
select plan(10);

create temporary table bodies (what text, body bytea);
insert into bodies values
  ('a NUL in JSON', '{"t":"a\\u0000b"}'),
  ('numbers and order', '{"bb":1.10,"a":1e2,"n":12345678901234567890.10,"z":-0,"a":1}'),
  ('NUL bytes', '\x00ff00'),
  ('no UTF-8', '\xc328fffe'),
  ('every byte', (select string_agg(decode(lpad(to_hex(n), 2, '0'), 'hex'), '' order by n) from generate_series(0, 255) n));
create temporary table answers as
select b.what, b.body, (pgidem.idem_finish(:'user_id', b.what, c.token, 200, null, null, null, b.body)).response_body as first
from bodies b, lateral pgidem.idem_claim(:'user_id', b.what, :'fingerprint') c;
select is(first, body, what || ': the first answer') from answers;
select is((pgidem.idem_claim(:'user_id', what, :'fingerprint')).response_body, body, what || ': the replay') from answers;

select * from finish();
rollback;
