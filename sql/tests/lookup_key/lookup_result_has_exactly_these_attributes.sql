begin;
select plan(1);

select is(
  (
    select string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod)) collate "default", E'\n' order by a.attnum)
    from pg_attribute a
    where a.attrelid = 'pgidem.lookup_result'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  concat_ws(E'\n',
    'table_name text',
    'state text',
    'live boolean',
    'action text',
    'response_status integer',
    'resource_id uuid',
    'one_time_secret boolean',
    'created_at timestamp with time zone',
    'age interval',
    'expires_at timestamp with time zone',
    'running_pid integer',
    'response_body text'),
  'names and types in this order'
);

select * from finish();
rollback;
