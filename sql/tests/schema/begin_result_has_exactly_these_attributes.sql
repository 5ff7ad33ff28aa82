begin;
select plan(1);

select is(
  (
    select string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod)) collate "default", E'\n' order by a.attnum)
    from pg_attribute a
    where a.attrelid = 'pgidem.begin_result'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  concat_ws(E'\n',
    'outcome text',
    'response_status integer',
    'response_body text',
    'resource_id uuid',
    'one_time_secret boolean',
    'retry_after integer',
    'created_at timestamp with time zone',
    'expires_at timestamp with time zone'),
  'names and types in this order'
);

select * from finish();
rollback;
