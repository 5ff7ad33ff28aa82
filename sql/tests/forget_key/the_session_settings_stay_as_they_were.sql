begin;
-- Case 13.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(3);

prepare settings as
select name, setting from pg_settings where name in ('lock_timeout', 'statement_timeout', 'search_path', 'enable_seqscan');

savepoint another_transaction;
select :begin_key \gset
release savepoint another_transaction;
set local lock_timeout = '7s';
set local statement_timeout = '60s';
set local search_path = public, pg_catalog;
create temporary table before as execute settings;

select throws_ok(format('select pgidem.forget_key(%L, %L)', :'principal', :'key'), 'ID002', null, 'refused');
select results_eq('settings', 'table before', 'after that');
select pgidem.forget_key(:'principal', :'key', true) \gset
select results_eq('settings', 'table before', 'after the key was forgotten');

select * from finish();
rollback;
