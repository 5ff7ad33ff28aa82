begin;
-- Case 68: temporary tables, and functions and operators in front of pg_catalog.
\ir ../_setup.psql
\ir ../_planted.psql
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_diagnose.psql
select plan(16);

update pg_temp.idempotency_record set user_id = :'user_id', idem_key = :'key';
savepoint another_transaction;
select token as dead from pgidem.idem_claim(:'user_id', 'dead', :'fingerprint') \gset
update pgidem.idempotency_record set live_until = now() - interval '1 hour' where user_id = :'user_id';
release savepoint another_transaction;
create or replace function pgidem._mine(p_xmin xid) returns boolean language sql stable return p_xmin operator(pg_catalog.=) pg_catalog.xid(pg_catalog.pg_current_xact_id_if_assigned());

set local search_path = planted, pg_temp, pg_catalog;
select outcome as first, token, live_until from :claim_key \gset
select outcome as running from :claim_key \gset
select outcome as reuse from :claim_other_request \gset
select outcome as taken_over from pgidem.idem_claim(:'user_id', 'dead', :'fingerprint', '1 hour', '1 hour', '1 second', :'principal') \gset
select outcome as stale from pgidem.idem_finish(:'user_id', 'dead', :dead, 200, null, null, null, null) \gset
select pgidem.idem_renew(:'user_id', :'key', :token) as renewed, pgidem.idem_renew(:'user_id', :'key', :token, '1 hour') as renewed_for_long \gset
select pgidem.idem_assert_lease(:'user_id', :'key', :token) \gset
select outcome as stored, response_body as body from pgidem.idem_finish(:'user_id', :'key', :token, 201, 'text/plain', null, null, 'done') \gset
select outcome as again from pgidem.idem_finish(:'user_id', :'key', :token, 201, 'text/plain', null, null, 'again') \gset
select outcome as replay from :claim_key \gset
select pgidem.idem_release(:'user_id', :'key', :token) as released \gset
select pg_temp.diagnose(pg_catalog.format('select pgidem.idem_assert_lease(%L, %L, %L)', :'user_id', :'key', :token)) as lost \gset
select pg_temp.diagnose(pg_catalog.format('select pgidem.idem_finish(%L, %L, 1, 99, null, null, null, null)', :'user_id', :'key')) as refused \gset
select pg_temp.diagnose('select pgidem.idem_claim($$$$, $$$$, null)') as no_user \gset
select pg_temp.diagnose('call pgidem.idem_claim_committed(''u'', ''k'', null)') as committed \gset
set local search_path = public;

select is(:'first'::text, 'claimed', 'the planted response is not read');
select cmp_ok(:'live_until'::timestamptz, '>', now() + interval '9 minutes', 'nor the planted settings');
select is(:'running'::text, 'in_progress', 'running');
select is(:'reuse'::text, 'reused', 'a reuse');
select is(:'taken_over'::text, 'claimed', 'a takeover');
select is(:'stale'::text, 'in_progress', 'a stale finish');
select ok(:'renewed' and :'renewed_for_long', 'renewed');
select is(:'stored'::text, 'stored', 'stored');
select is(:'body'::bytea, 'done'::bytea, 'with its body');
select is(:'again'::text, 'stored', 'again');
select is(:'replay'::text, 'replay', 'a replay');
select is(:'released'::boolean, false, 'not released');
select is(:'lost'::jsonb ->> 'code', 'ID003', 'no lease to assert');
select is(:'refused'::jsonb ->> 'code' || (:'no_user'::jsonb ->> 'code'), '2202322023', 'refused as without them');
select is(:'committed'::jsonb ->> 'code', '22023', 'the procedure comes to its function');
select is(count(*)::integer, 1, 'the planted table is as it was') from pg_temp.idempotency_record where response_status = 200;

select * from finish();
rollback;
