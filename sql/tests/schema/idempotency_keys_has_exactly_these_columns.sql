begin;
select plan(1);

select is(
  (
    select string_agg(
      concat_ws(' ',
        a.attname,
        format_type(a.atttypid, a.atttypmod),
        case when a.attnotnull then 'not null' end,
        'default ' || pg_get_expr(d.adbin, d.adrelid),
        nullif(a.attidentity, ''),
        nullif(a.attgenerated, '')) collate "default",
      E'\n' order by a.attnum)
    from pg_attribute a
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = 'pgidem.idempotency_keys'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  concat_ws(E'\n',
    'principal_id uuid not null',
    'key uuid not null',
    'action text not null',
    'request_sha256 bytea not null',
    'state text not null default ''in_progress''::text',
    'response_status smallint',
    'response_body jsonb',
    'resource_id uuid',
    'created_at timestamp with time zone not null default now()',
    'expires_at timestamp with time zone not null'),
  'columns, order, types, not null and defaults'
);

select * from finish();
rollback;
