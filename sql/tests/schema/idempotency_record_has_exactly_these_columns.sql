begin;
select plan(1);

select is(
  (
    select string_agg(
      concat_ws(' ',
        a.attname,
        format_type(a.atttypid, a.atttypmod),
        'collate ' || (select c.collname from pg_collation c where c.oid = a.attcollation and c.collname <> 'default'),
        case when a.attnotnull then 'not null' end,
        'default ' || pg_get_expr(d.adbin, d.adrelid),
        nullif(a.attidentity, ''),
        nullif(a.attgenerated, '')) collate "default",
      E'\n' order by a.attnum)
    from pg_attribute a
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = 'pgidem.idempotency_record'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  concat_ws(E'\n',
    'user_id text collate C not null',
    'idem_key text collate C not null',
    'request_sha256 bytea not null',
    'token bigint not null',
    'first_token bigint not null',
    'attempt uuid',
    'state text not null default ''in_progress''::text',
    'live_until timestamp with time zone not null',
    'retention interval not null',
    'response_status smallint',
    'response_content_type text',
    'response_location text',
    'response_etag text',
    'response_body bytea',
    'one_time_secret boolean not null default false',
    'created_at timestamp with time zone not null',
    'finished_at timestamp with time zone',
    'expires_at timestamp with time zone not null'),
  'columns, order, types, collations, not null and defaults'
);

select * from finish();
rollback;
