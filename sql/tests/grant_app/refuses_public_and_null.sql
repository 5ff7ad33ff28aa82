begin;
\ir ../_alone.psql
select plan(3);

select throws_ok($$select pgidem.grant_app('public')$$, '22023', 'invalid role', 'public is everybody');
select throws_ok('select pgidem.grant_app(null)', '22023', 'invalid role', 'null is nobody');
select ok(not has_function_privilege('public', 'pgidem.idem_begin(uuid, uuid, text, bytea, interval, interval)', 'execute'),
  'nothing was granted');

select * from finish();
rollback;
