begin;
-- Case 68: temporary tables, and functions and operators in front of pg_catalog.
\ir ../_setup.psql
\ir ../_planted.psql
select plan(3);

set local search_path = planted, pg_temp, pg_catalog;
select pg_catalog.count(*) as planted_rows from pgidem.lookup_key(:'principal', :'key') \gset
select :begin_key \gset
select running_pid from pgidem.lookup_key(:'principal', :'key') \gset
select :complete_key \gset
select state, response_body from pgidem.lookup_key(:'principal', :'key', true) \gset
set local search_path = public;

select is(:planted_rows, 0, 'the planted row is not shown');
select is(:running_pid, pg_backend_pid(), 'the true runner');
select is(:'state' || ' ' || :'response_body', 'completed {"amount": 1}', 'the true answer');

select * from finish();
rollback;
