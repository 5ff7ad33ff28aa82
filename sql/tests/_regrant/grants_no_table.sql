begin;
\ir ../_alone.psql
select plan(2);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app') \gset
select pgidem._regrant() \gset
select ok(not has_any_column_privilege('pgidem_test_app', 'pgidem.idempotency_keys', 'select'), 'an upgrade opens no table');
select ok(not has_any_column_privilege('pgidem_test_app', 'pgidem.idempotency_record', 'select'), 'neither of them');

select * from finish();
rollback;
