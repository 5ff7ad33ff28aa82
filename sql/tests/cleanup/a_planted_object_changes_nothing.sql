begin;
-- Case 68. It runs with the search_path of its caller, in front of which another role may plant things.
\ir ../_setup.psql
\ir ../_planted.psql
\ir ../_diagnose.psql
select plan(3);

set local search_path = planted, pg_temp, pg_catalog;
select pg_temp.diagnose('call pgidem.cleanup(10, 2, ''1 second'')') as ends \gset
select pg_temp.diagnose('call pgidem.cleanup(0, -1, ''-1 second'')') as refuses \gset
select pg_temp.diagnose('call pgidem.cleanup()') as defaults \gset
set local search_path = public;

select is(:'ends'::jsonb ->> 'code', '2D000', 'it comes to its commit as without them');
select is(:'refuses'::jsonb ->> 'code', '22023', 'it refuses as without them');
select is(:'defaults'::jsonb ->> 'code', '2D000', 'the size of the true settings');

select * from finish();
rollback;
