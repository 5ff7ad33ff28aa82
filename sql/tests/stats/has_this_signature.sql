begin;
select plan(3);

select is(pg_get_function_arguments('pgidem.stats'::regproc), '', 'no parameter');
select is(pg_get_function_result('pgidem.stats'::regproc), 'SETOF pgidem.stat', 'result');
select results_eq(
  $$select concat_ws(' ', metric, table_name, unit) from pgidem.stats()$$,
  $$
    select concat_ws(' ', metric, table_name, unit)
    from unnest(array['idempotency_keys', 'idempotency_record']) with ordinality t (table_name, place)
    cross join (
      values (1, 'rows', 'rows'), (2, 'expired', 'rows'), (3, 'oldest_expired_age', 'seconds'), (4, 'dead_rows', 'rows'),
        (5, 'vacuum_age', 'seconds'), (6, 'table_size', 'bytes'), (7, 'index_size', 'bytes'), (8, 'running', 'rows'), (9, 'abandoned', 'rows'), (10, 'live', 'rows'),
        (11, 'oldest_age', 'seconds'), (12, 'retention', 'seconds')
    ) m (place, metric, unit)
    where true
    union all
    values ('cleanup_age seconds'), ('cleanup_success_age seconds'), ('cleanup_duration seconds'), ('cleanup_batches'), ('cleanup_deleted rows'), ('cleanup_jobs'), ('next_cleanup seconds')
  $$,
  'the figures'
);

select * from finish();
rollback;
