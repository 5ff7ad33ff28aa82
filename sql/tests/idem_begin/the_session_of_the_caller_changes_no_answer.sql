begin;
-- What a role may set for itself: formats, plans, parsing.
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(6);

set local timezone = 'Asia/Kathmandu';
set local datestyle = 'SQL, DMY';
set local intervalstyle = 'sql_standard';
set local bytea_output = 'escape';
set local extra_float_digits = -15;
set local standard_conforming_strings = off;
set local transform_null_equals = on;
set local array_nulls = off;
set local quote_all_identifiers = on;
set local xmloption = 'document';
set local row_security = off;
set local check_function_bodies = off;
set local default_transaction_read_only = on;
set local default_transaction_isolation = 'serializable';
set local plan_cache_mode = 'force_custom_plan';
set local enable_indexscan = off;
set local enable_bitmapscan = off;
set local enable_indexonlyscan = off;
set local jit_above_cost = 0;

select is(outcome || ' ' || extract(epoch from expires_at - created_at), 'claimed 93600.500000', 'a claim')
from pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', '1 day 2 hours 0.5 seconds', '1.5 seconds');
select is(
  pgidem.idem_complete(:'principal', :'key', 200, '{"n": 0.1, "id": "0192f0c1-2345-7abc-8def-0123456789ab"}'),
  '{"n": 0.1, "id": "0192f0c1-2345-7abc-8def-0123456789ab"}',
  'its response'
);
select results_eq(
  'select outcome, response_body, resource_id from ' || :'begin_key',
  $$values ('replay', '{"n": 0.1, "id": "0192f0c1-2345-7abc-8def-0123456789ab"}', '0192f0c1-2345-7abc-8def-0123456789ab'::uuid)$$,
  'a replay'
);
select is((:begin_other_request).outcome, 'reused', 'a reuse');
select is((pgidem.idem_save_final(:'principal', gen_random_uuid(), 'pay', :'fingerprint', 404, '{}')).outcome, 'stored', 'a final 4xx');
select is(
  pg_temp.diagnose('select ' || :'complete_key') ->> 'code', 'ID001', 'an error'
);

select * from finish();
rollback;
