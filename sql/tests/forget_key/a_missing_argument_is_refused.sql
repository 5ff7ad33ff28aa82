begin;
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(3);

select is(
  pg_temp.diagnose(format('select pgidem.forget_key(%s)', arguments)),
  jsonb_build_object(
    'code', '22023',
    'message', 'invalid argument',
    'detail', detail,
    'hint', 'Pass the principal and the key as text, a UUID in its form of 36 characters.'),
  detail
)
from (values
  ('null, ''order-7''', 'p_user_id is null.'),
  ('''alice'', null', 'p_key is null.'),
  ('null, null, true', 'p_user_id is null. p_key is null.')
) v (arguments, detail);

select * from finish();
rollback;
