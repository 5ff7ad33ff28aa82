begin;
-- The text may be personal data, and an error goes into logs.
\ir ../_diagnose.psql
select plan(4);

select pg_temp.diagnose(format('select pgidem._refuse_record_key(%L, %L)', user_id, key)) as e
from (values (E'alice\n', 'hunter2')) v (user_id, key) \gset
select is(:'e'::jsonb ->> 'code', '22023', 'refused');
select is(:'e'::jsonb ->> 'detail',
  'p_user_id has 6 characters, p_key has 7; or one of them holds a character that is not allowed.', 'the lengths alone');
select alike(:'e'::jsonb ->> 'hint', '%255 characters%', 'and the rule');
select ok(:'e' !~ 'alice|hunter2', 'no text');

select * from finish();
rollback;
