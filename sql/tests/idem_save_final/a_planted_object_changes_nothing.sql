begin;
-- Case 68.
\ir ../_setup.psql
\ir ../_planted.psql
select plan(3);

set local search_path = planted, pg_temp, pg_catalog;
select outcome as first from :save_final_key \gset
select outcome as repeat, response_body from :save_final_key \gset
set local search_path = public;

select is(:'first'::text, 'stored', 'the planted response is not read');
select is(:'repeat'::text, 'replay', 'the repeat');
select is(:'response_body'::text, '{"code": "not_found"}', 'gets the true response');

select * from finish();
rollback;
