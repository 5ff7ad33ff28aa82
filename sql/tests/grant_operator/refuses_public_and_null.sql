begin;
\ir ../_alone.psql
select plan(3);

select throws_ok($$select pgidem.grant_operator('public')$$, '22023', 'invalid role', 'public is everybody');
select throws_ok('select pgidem.grant_operator(null)', '22023', 'invalid role', 'null is nobody');
select throws_ok($$select pgidem.grant_operator('pgidem_test_missing')$$, '42704', null, 'an unknown role');

select * from finish();
rollback;
