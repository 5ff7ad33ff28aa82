begin;
-- Case 13.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(6);

prepare settings as
select name, setting from pg_settings where name in ('lock_timeout', 'statement_timeout', 'search_path', 'enable_seqscan');

set local lock_timeout = '7s';
set local statement_timeout = '60s';
set local search_path = public, pg_catalog;
create temporary table before as execute settings;

create temporary table keys as select gen_random_uuid() as expired;
savepoint another_transaction;
insert into pgidem.idempotency_keys
select :'principal', expired, 'pay', :'fingerprint', 'completed', 200, '{}', null, now() - interval '2 days', now() - interval '1 day'
from keys;
release savepoint another_transaction;

select :begin_key \gset
select results_eq('settings', 'table before', 'after claimed');
select :begin_key \gset
select results_eq('settings', 'table before', 'after in_progress');
select :complete_key \gset
select :begin_key \gset
select results_eq('settings', 'table before', 'after replay');
select :begin_other_request \gset
select results_eq('settings', 'table before', 'after reused');
select is((pgidem.idem_begin(:'principal', expired, 'pay', :'fingerprint')).outcome, 'claimed', 'claimed in place of an expired row')
from keys;
select results_eq('settings', 'table before', 'after that');

select * from finish();
rollback;
