begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
\ir ../_diagnose.psql
select plan(4);

savepoint another_transaction;
select :begin_key \gset
release savepoint another_transaction;

select pg_temp.diagnose(format('select pgidem.forget_key(%L, %L)', :'principal', :'key')) as e \gset
select is(
  :'e'::jsonb - 'hint',
  '{"code": "ID002", "message": "the key is running", "detail": "Its claim was committed without idem_complete."}',
  'somebody may still work on it'
);
select alike(:'e'::jsonb ->> 'hint', '%pass p_force => true%', 'the hint says how to free it');
select throws_ok(format('select pgidem.forget_key(%L, %L, null)', :'principal', :'key'), 'ID002', null, 'null is no force');
select is((:begin_key).outcome, 'in_progress', 'the key stays');

select * from finish();
rollback;
