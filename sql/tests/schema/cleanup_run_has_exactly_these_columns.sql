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
        nullif(a.attidentity, '')) collate "default",
      E'\n' order by a.attnum)
    from pg_attribute a
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = 'pgidem.cleanup_run'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  concat_ws(E'\n',
    'id bigint not null a',
    'started_at timestamp with time zone not null',
    'ended_at timestamp with time zone',
    'batches integer not null default 0',
    'deleted bigint not null default 0',
    'mark timestamp with time zone not null default ''-infinity''::timestamp with time zone'),
  'columns, order, types, not null and defaults'
);

select * from finish();
rollback;
