begin;
select plan(1);

select is(
  (
    select string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod)) collate "default", E'\n' order by a.attnum)
    from pg_attribute a
    where a.attrelid = 'pgidem.claim_result'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  concat_ws(E'\n',
    'outcome text',
    'token bigint',
    'retry_after integer',
    'live_until timestamp with time zone',
    'response_status integer',
    'content_type text',
    'location text',
    'etag text',
    'response_body bytea',
    'one_time_secret boolean'),
  'names and types in this order'
);

select * from finish();
rollback;
