begin;
-- As in what_this_transaction_wrote_is_refused.
\ir ../_record.psql
\ir ../_diagnose.psql
select plan(4);

select token from :claim_key \gset
select pg_temp.diagnose(format('select pgidem.forget_key(%L, %L, true)', :'user_id', :'key')) as e \gset
select is(concat_ws(' ', :'e'::jsonb ->> 'code', :'e'::jsonb ->> 'detail'), 'ID002 This transaction runs it.', 'a claim, by force');
select alike(:'e'::jsonb ->> 'hint', '%ROLLBACK%', 'the hint says how it goes');
execute finish(:token, 'done') \gset
select throws_ok(format('select pgidem.forget_key(%L, %L, true)', :'user_id', :'key'), 'ID002', 'the key is running', 'finished');
select is((:claim_key).outcome, 'replay', 'the answer stays');

select * from finish();
rollback;
