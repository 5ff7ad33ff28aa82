begin;
\ir ../_doctor.psql
select plan(10);

select is(pg_temp.status('public_rights'), 'ok', 'as installed');
create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app', true) \gset
select is(pg_temp.status('public_rights'), 'ok', 'with rights for one role');

grant execute on function pgidem.version() to public;
select is(pg_temp.status('public_rights'), 'fail', 'a function');
select is(pg_temp.detail('public_rights'), 'PUBLIC has rights on pgidem.version()', 'is named');
select is(pg_temp.follow('public_rights'), 'ok', 'and the mend helps');
create function pgidem.of_a_stranger() returns void language sql return null;
select is(pg_temp.status('public_rights'), 'fail', 'a function that has the rights of a new one');
drop function pgidem.of_a_stranger();
grant usage on schema pgidem to public;
grant select on pgidem.principals to public;
grant select (key) on pgidem.idempotency_keys to public;
grant usage on sequence pgidem.cleanup_run_id_seq to public;
select alike(pg_temp.detail('public_rights'), 'PUBLIC has rights on pgidem.cleanup_run_id_seq, pgidem.idempotency_keys.key, pgidem.principals and 1 more', 'schema, table, column, sequence');
select is(pg_temp.follow('public_rights'), 'fail', 'a sequence is no table');
revoke all on sequence pgidem.cleanup_run_id_seq from public;
select is(pg_temp.status('public_rights'), 'ok', 'the others went');
select is(has_function_privilege('pgidem_test_app', 'pgidem.version()', 'execute'), true, 'the rights of the role stay');

select * from finish();
rollback;
