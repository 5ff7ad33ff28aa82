begin;
\ir ../_alone.psql
select plan(4);

select results_eq(
  format($$select table_name collate "C", value from pgidem.stats() where metric = %L order by 1$$, metric),
  format($$select relname::text collate "C", (%s)::numeric from pg_class where oid in ('pgidem.idempotency_keys'::regclass, 'pgidem.idempotency_record'::regclass) order by 1$$, figure),
  metric
)
from (
  values ('rows', 'nullif(reltuples, -1)'),
    ('table_size', 'pg_table_size(oid)'),
    ('index_size', 'pg_indexes_size(oid)'),
    ('dead_rows', 'pg_stat_get_dead_tuples(oid)')
) f (metric, figure);

select * from finish();
rollback;
