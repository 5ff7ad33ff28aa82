begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_diagnose.psql
select plan(8);

savepoint another_transaction;
select token from :claim_key \gset
release savepoint another_transaction;
select pg_temp.diagnose(format('select pgidem.forget_key(%L, %L)', :'user_id', :'key')) as e \gset
select is(:'e'::jsonb - 'hint', '{"code": "ID002", "message": "the key is running", "detail": "A lease is running."}', 'somebody may still work on it');
select alike(:'e'::jsonb ->> 'hint', '%pass p_force => true%', 'the hint says how to free it');
select throws_ok(format('select pgidem.forget_key(%L, %L, null)', :'user_id', :'key'), 'ID002', null, 'null is no force');
select is((:claim_key).outcome, 'in_progress', 'the key stays');
select is(pgidem.forget_key(:'user_id', :'key', p_force => true), true, 'forgotten');
select token as new_token from :claim_key \gset
select cmp_ok(:new_token::bigint, '>', :token::bigint, 'C1: the next claim has a larger token');
execute finish(:token, 'late') \gset
select is(:'outcome'::text, 'in_progress', 'and the worker that was believed dead stores nothing');
select is(state, 'in_progress', 'over it') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
