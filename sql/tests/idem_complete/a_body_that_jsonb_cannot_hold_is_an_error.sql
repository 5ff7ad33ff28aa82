begin;
-- Case 28 and D13: the claim is as it was, and the caller rolls back.
\ir ../_setup.psql
select plan(7);

prepare complete(text) as select pgidem.idem_complete(:'principal', :'key', 200, $1::jsonb);

select :begin_key \gset
select throws_ok(format('execute complete(%L)', body), code, null, name)
from (values
  ('{"t":"a\u0000b"}', '22P05', 'a NUL'),
  ('["\ude00\ud83d"]', '22P02', 'surrogates in the wrong order'),
  ('{"n":1e131072}', '22003', 'a huge exponent'),
  (repeat('[', 100000) || repeat(']', 100000), '54001', 'brackets without end'),
  ('', '22P02', 'an empty text')
) v (body, code, name);
select is((select state from pgidem.idempotency_keys where :this_key), 'in_progress', 'nothing is written');
select is(:complete_key, '{"amount": 1}', 'another body is stored');

select * from finish();
rollback;
