begin;
-- Case 68.
\ir ../_setup.psql
\ir ../_planted.psql
select plan(3);

set local search_path = planted, pg_temp, pg_catalog;
select :begin_key \gset
select pgidem.idem_complete(:'principal', :'key', 201, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}', true) as body \gset
set local search_path = public;

select is(:'body'::text, '{"one_time_secret": true}', 'completed');
select is((select state from pgidem.idempotency_keys where :this_key), 'completed', 'in the true table');
select is((select response_body from pg_temp.idempotency_keys), '{"planted": true}', 'the planted one is untouched');

select * from finish();
rollback;
