begin;
-- What a role may set for itself: formats, plans, parsing.
\ir ../_record.psql
\ir ../_diagnose.psql
select plan(9);

set local timezone = 'Asia/Kathmandu';
set local datestyle = 'SQL, DMY';
set local intervalstyle = 'sql_standard';
set local bytea_output = 'escape';
set local extra_float_digits = -15;
set local standard_conforming_strings = off;
set local transform_null_equals = on;
set local array_nulls = off;
set local quote_all_identifiers = on;
set local row_security = off;
set local check_function_bodies = off;
set local default_transaction_read_only = on;
set local default_transaction_isolation = 'serializable';
set local plan_cache_mode = 'force_custom_plan';
set local enable_indexscan = off;
set local enable_bitmapscan = off;
set local enable_indexonlyscan = off;
set local jit_above_cost = 0;
-- Compiled anew under these settings.
discard plans;

select outcome, token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '1 day 2 hours 0.5 seconds') \gset
select is(:'outcome'::text, 'claimed', 'a claim');
select is(extract(epoch from live_until - created_at), 93600.5, 'its lease') from pgidem.idempotency_record where :this_record;
select is((:claim_key).outcome, 'in_progress', 'running');
select is((:claim_other_request).outcome, 'reused', 'a reuse');
select throws_ok(format('select pgidem.idem_claim(%L, %L, %L)', E'u\nu', 'k', :'fingerprint'), '22023', 'invalid argument', 'a control character in a user');
select throws_ok(format('select pgidem.idem_claim(%L, %L, %L)', E'u\u0085', 'k', :'fingerprint'), '22023', 'invalid argument', 'one beyond ASCII');
select throws_ok(format('select pgidem.idem_finish(%L, %L, %L, 200, %L, null, null, null)', :'user_id', :'key', :token, E'text/plain\r\nX: 1'),
  '22023', 'invalid argument', 'one in a header');
execute finish(:token, 'done') \gset
select is(:'outcome'::text, 'stored', 'its response');
select results_eq('select outcome, response_body from ' || :'claim_key', $$values ('replay', 'done'::bytea)$$, 'a replay');

select * from finish();
rollback;
