begin;
\ir ../_diagnose.psql
select plan(1);

select is(pg_temp.diagnose('select pgidem.forget_principal(null)') - 'hint',
  '{"code": "22023", "message": "invalid argument", "detail": "p_user_id is null."}', 'null');

select * from finish();
rollback;
