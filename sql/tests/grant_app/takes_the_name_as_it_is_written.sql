begin;
\ir ../_alone.psql
select plan(4);

create role "Pgidem Test ""App""";
select lives_ok($$select pgidem.grant_app('Pgidem Test "App"')$$, 'quotes, blanks and capitals');
select throws_ok($$select pgidem.grant_app('pgidem_test_missing')$$, '42704', null, 'an unknown role');
select throws_ok($$select pgidem.grant_app('current_user')$$, '42704', null, 'a keyword is no role');
select throws_ok($$select pgidem.grant_app('pgidem_test_missing; drop schema pgidem')$$, '42704', null, 'nor is a statement');

select * from finish();
rollback;
