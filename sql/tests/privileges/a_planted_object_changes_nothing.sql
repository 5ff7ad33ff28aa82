begin;
-- Case 68: a role that has every group plants tables, functions and operators, and calls each function with them in front.
\ir ../_setup.psql
\ir ../_planted.psql
\ir ../_diagnose.psql
select plan(27);

create role pgidem_test_app;
select pgidem.grant_app('pgidem_test_app') \gset
select pgidem.grant_operator('pgidem_test_app') \gset
grant usage on schema planted to pgidem_test_app;
select pgidem.version() as true_version, gen_random_uuid() as other_key, gen_random_uuid() as forgotten_key \gset

set local role pgidem_test_app;
set local search_path = planted, pg_temp, pg_catalog;
select pgidem.register_principal(:'principal') \gset
select outcome as first from :begin_key \gset
select :complete_key as body \gset
select outcome as repeat, response_body from :begin_key \gset
select outcome as final from pgidem.idem_save_final(:'principal', :'other_key', 'pay', :'fingerprint', 404, '{}') \gset
select outcome as claimed, token from pgidem.idem_claim('alice', 'order 1', :'fingerprint') \gset
select pgidem.idem_renew('alice', 'order 1', :token) as renewed \gset
select pgidem.idem_assert_lease('alice', 'order 1', :token) as asserted \gset
select outcome as finished, response_body as bytes from pgidem.idem_finish('alice', 'order 1', :token, 201, null, null, null, 'done') \gset
select outcome as again from pgidem.idem_claim('alice', 'order 1', :'fingerprint') \gset
select pgidem.idem_release('alice', 'order 1', :token) as released \gset
select key_ttl::text, lock_timeout::text, cleanup_batch_size from pgidem.show_settings() \gset
select state, live, response_status from pgidem.lookup_key(:'principal', :'key') \gset
select pgidem.cleanup_batch() as cleaned \gset
select p_deleted as in_a_run from pgidem._cleanup_step(1, null) \gset
select pgidem.unschedule_cleanup() as unscheduled \gset
select count(*) as figures from pgidem.stats() \gset
select count(*) as runs from pgidem.cleanup_runs() \gset
select count(*) as checks from pgidem.doctor() \gset
select pg_temp.diagnose('select pgidem.schedule_cleanup()') as not_scheduled \gset
select pgidem.version() as version \gset
reset role;
set local search_path = public;

-- A stored response to be forgotten has to be another transaction's.
\ir ../_foreign_rows.psql
savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'forgotten_key', 'pay', :'fingerprint', 'completed', 200, '{}', null, now(), now() + interval '1 day');
release savepoint another_transaction;
set local role pgidem_test_app;
set local search_path = planted, pg_temp, pg_catalog;
select pgidem.forget_key(:'principal', :'forgotten_key') as forgotten \gset
select pgidem.forget_principal('nobody') as all_forgotten \gset
reset role;
set local search_path = public;

select is(:'first'::text, 'claimed', 'idem_begin: the planted response is not read');
select is(:'body'::text, '{"amount": 1}', 'idem_complete');
select is(:'repeat'::text, 'replay', 'idem_begin again');
select is(:'response_body'::text, '{"amount": 1}', 'with the true response');
select is(:'final'::text, 'stored', 'idem_save_final');
select is(:'claimed'::text, 'claimed', 'idem_claim');
select is(:'renewed'::boolean, true, 'idem_renew');
select is(:'asserted'::text, '', 'idem_assert_lease');
select is(:'finished'::text, 'stored', 'idem_finish');
select is(:'bytes'::bytea, 'done'::bytea, 'with the true response');
select is(:'again'::text, 'replay', 'idem_claim again');
select is(:'released'::boolean, false, 'idem_release');
select is(format('%s %s %s', :'key_ttl', :'lock_timeout', :'cleanup_batch_size'), '24:00:00 00:00:02 1000', 'show_settings');
select is(format('%s %s %s', :'state', :'live', :'response_status'), 'completed t 201', 'lookup_key');
select is(:'forgotten'::boolean, true, 'forget_key');
select is(:'cleaned'::integer, 0, 'cleanup_batch');
select is(:'in_a_run'::integer, 0, '_cleanup_step');
select is(:'unscheduled'::boolean, false, 'unschedule_cleanup');
select is(:'figures'::integer, 31, 'stats');
select is(:'runs'::integer, 1, 'cleanup_runs');
select is(:'checks'::integer, 20, 'doctor');
select is(:'all_forgotten'::integer, 0, 'forget_principal');
select is(:'not_scheduled'::jsonb ->> 'code', 'ID004', 'schedule_cleanup');
select is(:'version'::text, :'true_version', 'version');
select is((select count(*) from pgidem.principals where id = :'principal'), 1::bigint, 'register_principal writes the true table');
select results_eq(
  'select response_body::text from pg_temp.idempotency_keys',
  array['{"planted": true}'],
  'the planted tables are as they were'
);
select set_eq(
  $$select p.proname::text from pg_proc p
    where p.pronamespace = 'pgidem'::regnamespace and p.prokind = 'f' and has_function_privilege('pgidem_test_app', p.oid, 'execute')$$,
  array['register_principal', 'idem_begin', 'idem_complete', 'idem_save_final', 'show_settings', 'lookup_key', 'forget_key', 'forget_principal',
    'cleanup_batch', '_cleanup_step', 'schedule_cleanup', 'unschedule_cleanup', 'stats', 'cleanup_runs', 'doctor', 'version', 'idem_claim', 'idem_finish', 'idem_release', 'idem_renew', 'idem_assert_lease'],
  'and that was every function that the role may call'
);

select * from finish();
rollback;
