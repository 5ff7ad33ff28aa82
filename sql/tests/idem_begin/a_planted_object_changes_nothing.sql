begin;
-- Case 68: temporary tables, and functions and operators in front of pg_catalog.
\ir ../_setup.psql
\ir ../_planted.psql
select plan(6);

set local search_path = planted, pg_temp, pg_catalog;
select outcome as first, created_at, expires_at from :begin_key \gset
select :complete_key as body \gset
select outcome as repeat, response_body from :begin_key \gset
select outcome as reuse from :begin_other_request \gset
select outcome as other_key
from pgidem.idem_begin(:'principal', pg_catalog.gen_random_uuid(), 'pay', :'fingerprint', '1 hour', '1 second') \gset
set local search_path = public;

select is(:'first'::text, 'claimed', 'the planted response is not read');
select is(:'expires_at'::timestamptz - :'created_at', interval '24:00:00', 'nor the planted settings');
select is(:'repeat'::text, 'replay', 'the same request');
select is(:'response_body'::text, '{"amount": 1}', 'gets the true response');
select is(:'reuse'::text, 'reused', 'another request');
select is(:'other_key'::text, 'claimed', 'a key with durations of its own');

select * from finish();
rollback;
