begin;
-- Case 68.
\ir ../_setup.psql
\ir ../_alone.psql
select plan(18);

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

select outcome, token from pgidem.idem_claim('alice', :'key', :'fingerprint') \gset
select is(:'outcome'::text, 'claimed', 'claims with a lease');
select is(pgidem.idem_renew('alice', :'key', :token), true, 'renews it');
select lives_ok(format('select pgidem.idem_assert_lease(%L, %L, %s)', 'alice', :'key', :token), 'asserts it');
select is((pgidem.idem_finish('alice', :'key', :token, 201, null, null, null, 'done')).outcome, 'stored', 'stores any bytes');
select is(pgidem.idem_release('alice', :'key', :token), false, 'releases nothing that is finished');

select throws_ok(format(statement, tablename), '42501', null, format(statement, tablename))
from unnest(array['idempotency_keys', 'idempotency_record']) tablename
cross join unnest(array['select from pgidem.%I', 'delete from pgidem.%I']) statement;
select throws_ok('update pgidem.settings set key_ttl = interval ''1 hour''', '42501', null, 'nor change the settings');
select throws_ok('select from pgidem.principals', '42501', null, 'nor list the principals');
select throws_ok(format('select pgidem._read(%L, %L, %L)', :'principal', :'key', :'fingerprint'), '42501', null, 'nor call a helper');
reset role;

select * from finish();
rollback;
