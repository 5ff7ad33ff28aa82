begin;
-- Case 13.
\ir ../_setup.psql
select plan(2);

prepare settings as
select name, setting from pg_settings where name in ('lock_timeout', 'statement_timeout', 'search_path', 'enable_seqscan');

set local lock_timeout = '7s';
set local statement_timeout = '60s';
set local search_path = public, pg_catalog;
create temporary table before as execute settings;
select count(*) as rows from pgidem.lookup_key(:'principal', :'key') \gset
select results_eq('settings', 'table before', 'without a row');
select :begin_key \gset
select count(*) as rows from pgidem.lookup_key(:'principal', :'key') \gset
select results_eq('settings', 'table before', 'with one');

select * from finish();
rollback;
