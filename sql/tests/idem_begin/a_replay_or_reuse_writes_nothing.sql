begin;
-- Case 08.
\ir ../_setup.psql
select plan(4);

create temporary view written as
select n_tup_ins + n_tup_upd + n_tup_del as row_versions
from pg_stat_xact_user_tables
where relid = 'pgidem.idempotency_keys'::regclass;

select :begin_key \gset
select :complete_key \gset
create temporary table before as
select k.xmin::text as version, k.cmin::text as command, k.ctid::text as place, k.* from pgidem.idempotency_keys k where :this_key;
select row_versions from written \gset

select is(count(*) filter (where (:begin_key).outcome = 'replay'), 100::bigint, '100 replays') from generate_series(1, 100);
select is(count(*) filter (where (:begin_other_request).outcome = 'reused'), 100::bigint, '100 reuses') from generate_series(1, 100);
select is((select row_versions from written), :'row_versions', 'no row version was written');
select results_eq(
  'select k.xmin::text as version, k.cmin::text as command, k.ctid::text as place, k.* from pgidem.idempotency_keys k where ' || :'this_key',
  'table before',
  'the row is the same'
);

select * from finish();
rollback;
