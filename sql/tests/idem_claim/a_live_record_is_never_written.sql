begin;
-- Case 08 and H5.
\ir ../_record.psql
select plan(5);

create temporary view written as
select n_tup_ins + n_tup_upd + n_tup_del as row_versions
from pg_stat_xact_user_tables
where relid = 'pgidem.idempotency_record'::regclass;
create temporary view versions as
select k.xmin::text as version, k.xmax::text as lock, k.cmin::text as command, k.ctid::text as place, k.* from pgidem.idempotency_record k where :this_record;

select token from :claim_key \gset
select row_versions from written \gset
create temporary table running as table versions;
select is(count(*) filter (where (:claim_key).outcome = 'in_progress')::integer, 100, '100 times in progress') from generate_series(1, 100);
select results_eq('table versions', 'table running', 'the row is the same');
execute finish(:token, 'done') \gset
create temporary table finished as table versions;
select is(count(*) filter (where (:claim_key).outcome = 'replay' and (:claim_other_request).outcome = 'reused')::integer, 100, '100 replays and reuses')
from generate_series(1, 100);
select results_eq('table versions', 'table finished', 'the row is the same');
select is((select row_versions from written), :row_versions + 1::bigint, 'only the response was written');

select * from finish();
rollback;
