begin;
-- The effect would be committed without its claim, and the retry would run again.
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(8);

prepare forget as select pgidem.forget_key(:'principal', :'key');
prepare force as select pgidem.forget_key(:'principal', :'key', true);

select :begin_key \gset
select throws_ok('forget', 'ID002', 'the key is running', 'a claim');
select throws_ok('force', 'ID002', 'the key is running', 'by force');
select pg_temp.diagnose(format('select pgidem.forget_key(%L, %L)', :'principal', :'key')) as e \gset
select is(:'e'::jsonb ->> 'detail', 'This transaction runs it.', 'the detail tells it from a committed claim');
select alike(:'e'::jsonb ->> 'hint', '%ROLLBACK%', 'the hint says how it goes');

savepoint s;
select throws_ok('forget', 'ID002', 'the key is running', 'from below a savepoint');
update pgidem.idempotency_keys set expires_at = now() - interval '1 hour' where :this_key;
select throws_ok('forget', 'ID002', 'the key is running', 'when its life is over');
rollback to savepoint s;

select :complete_key \gset
select throws_ok('forget', 'ID002', 'the key is running', 'completed');
select is((:begin_key).outcome, 'replay', 'the answer stays');

select * from finish();
rollback;
