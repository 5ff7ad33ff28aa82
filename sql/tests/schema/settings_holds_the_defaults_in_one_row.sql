begin;
select plan(2);

select results_eq(
  'select * from pgidem.settings',
  $$values (true, interval '24 hours', interval '2 seconds', interval '10 minutes', interval '24 hours',
    interval '1 minute', 1000)$$,
  'the row that the installation made'
);
select is(
  (
    select string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod)) collate "default", E'\n' order by a.attnum)
    from pg_attribute a
    where a.attrelid = 'pgidem.settings'::regclass
      and a.attnum > 0
      and not a.attisdropped
      and a.attnotnull
  ),
  concat_ws(E'\n',
    'singleton boolean',
    'key_ttl interval',
    'lock_timeout interval',
    'lease interval',
    'retention interval',
    'cleanup_interval interval',
    'cleanup_batch_size integer'),
  'typed columns, none of them nullable'
);

select * from finish();
rollback;
