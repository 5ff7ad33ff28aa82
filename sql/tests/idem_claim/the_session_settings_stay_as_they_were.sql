begin;
-- Case 13.
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(10);

prepare settings as
select name, setting from pg_settings where name in ('lock_timeout', 'statement_timeout', 'search_path', 'enable_seqscan');

set local lock_timeout = '7s';
set local statement_timeout = '60s';
set local search_path = public, pg_catalog;
create temporary table before as execute settings;

savepoint another_transaction;
select token as dead from pgidem.idem_claim(:'user_id', 'dead', :'fingerprint') \gset
update pgidem.idempotency_record set live_until = now() - interval '1 hour' where user_id = :'user_id';
release savepoint another_transaction;

select token from :claim_key \gset
select results_eq('settings', 'table before', 'after claimed');
select :claim_key \gset
select results_eq('settings', 'table before', 'after in_progress');
select is((pgidem.idem_claim(:'user_id', 'dead', :'fingerprint')).outcome, 'claimed', 'claimed in place of a dead record');
select results_eq('settings', 'table before', 'after that');
execute renew(:token, '1 hour') \gset
execute assert_lease(:token) \gset
select results_eq('settings', 'table before', 'after renew and assert');
execute finish(:token, 'done') \gset
select results_eq('settings', 'table before', 'after stored');
execute finish(:dead, 'done') \gset
select results_eq('settings', 'table before', 'after a stale finish');
select :claim_key \gset
select :claim_other_request \gset
select results_eq('settings', 'table before', 'after replay and reused');
select throws_ok(format('execute assert_lease(%s)', :token), 'ID003', null, 'finished');
select results_eq('settings', 'table before', 'after an error');

select * from finish();
rollback;
