begin;
\ir ../_alone.psql
select plan(2);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app', null) \gset
select ok(not has_any_column_privilege('pgidem_test_app', 'pgidem.idempotency_keys', 'select'), 'null means no');
select ok(not has_any_column_privilege('pgidem_test_app', 'pgidem.idempotency_record', 'select'), 'for both');

select * from finish();
rollback;
