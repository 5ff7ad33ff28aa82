begin;
\ir ../_alone.psql
select plan(1);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app', null) \gset
select ok(not has_any_column_privilege('pgidem_test_app', 'pgidem.idempotency_keys', 'select'), 'null means no');

select * from finish();
rollback;
