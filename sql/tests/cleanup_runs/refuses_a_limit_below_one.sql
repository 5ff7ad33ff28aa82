begin;
\ir ../_diagnose.psql
select plan(2);

select is(pg_temp.diagnose('select pgidem.cleanup_runs(0)') - 'hint',
  '{"code": "22023", "message": "invalid argument", "detail": "p_limit is 0."}', 'zero');
select is(pg_temp.diagnose('select pgidem.cleanup_runs(null)') ->> 'detail', 'p_limit is null.', 'null');

select * from finish();
rollback;
