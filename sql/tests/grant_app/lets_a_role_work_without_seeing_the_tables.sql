begin;
-- Case 68.
\ir ../_setup.psql
\ir ../_alone.psql
select plan(11);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app') \gset
set local role pgidem_test_app;
select pgidem.register_principal(:'principal') \gset
select is((:begin_key).outcome, 'claimed', 'claims');
select is(:complete_key, '{"amount": 1}', 'completes');
select is((:begin_key).response_body, '{"amount": 1}', 'is answered');
select is((:begin_other_request).outcome, 'reused', 'is refused');
select is((pgidem.idem_save_final(:'principal', gen_random_uuid(), 'pay', :'fingerprint', 404, '{}')).outcome, 'stored', 'stores');
select ok(key_ttl > '0', 'knows the settings') from pgidem.show_settings();

select throws_ok('select from pgidem.idempotency_keys', '42501', null, 'cannot read responses');
select throws_ok('delete from pgidem.idempotency_keys', '42501', null, 'nor delete them');
select throws_ok('update pgidem.settings set key_ttl = interval ''1 hour''', '42501', null, 'nor change the settings');
select throws_ok('select from pgidem.principals', '42501', null, 'nor list the principals');
select throws_ok(format('select pgidem._read(%L, %L, %L)', :'principal', :'key', :'fingerprint'), '42501', null, 'nor call a helper');
reset role;

select * from finish();
rollback;
