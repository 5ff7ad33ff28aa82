begin;
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(3);

select pg_temp.diagnose(
  format('select pgidem.idem_complete(%L, %L, 200, %L)', :'principal', :'key', '{"token": "tok_SECRET_7f3a"}')
) as e \gset
select alike(:'e'::jsonb ->> 'detail', '%idem_begin%ROLLBACK TO%', 'the detail tells how a claim gets lost');
select alike(:'e'::jsonb ->> 'hint', 'Roll back.%', 'the hint what to do');
select unalike(:'e'::text, '%SECRET%', 'no body in an error');

select * from finish();
rollback;
