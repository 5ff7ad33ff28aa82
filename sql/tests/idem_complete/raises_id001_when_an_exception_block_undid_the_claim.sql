begin;
-- C5.
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(2);

select throws_ok(format('do $$ begin perform %s; raise division_by_zero; end $$', :'begin_key'), '22012', null,
  'begin, then a failure that is caught');
select throws_ok('select ' || :'complete_key', 'ID001', null, 'nothing to complete');

select * from finish();
rollback;
