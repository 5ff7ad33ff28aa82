begin;
-- Case 13.
\ir ../_setup.psql
select plan(3);

prepare settings as
select name, setting from pg_settings where name in ('lock_timeout', 'statement_timeout', 'search_path', 'enable_seqscan');

set local lock_timeout = '7s';
set local statement_timeout = '60s';
set local search_path = public, pg_catalog;
create temporary table before as execute settings;
select :save_final_key \gset
select results_eq('settings', 'table before', 'after stored');
select :save_final_key \gset
select results_eq('settings', 'table before', 'after replay');
select pgidem.idem_save_final(:'principal', :'key', 'pay', :'other_fingerprint', 404, '{}') \gset
select results_eq('settings', 'table before', 'after reused');

select * from finish();
rollback;
