begin;
select plan(3);

select is(
  (
    select string_agg(
      concat_ws(' ',
        a.attname,
        format_type(a.atttypid, a.atttypmod),
        case when a.attnotnull then 'not null' end,
        'default ' || pg_get_expr(d.adbin, d.adrelid)) collate "default",
      E'\n' order by a.attnum)
    from pg_attribute a
    left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
    where a.attrelid = 'pgidem.principals'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  concat_ws(E'\n',
    'id uuid not null',
    'created_at timestamp with time zone not null default now()'),
  'columns'
);
select set_eq(
  $$
    select concat_ws(' ', c.conname::text, pg_get_constraintdef(c.oid))
    from pg_constraint c
    where c.conrelid = 'pgidem.principals'::regclass
      and c.contype <> 'n'
  $$,
  array['principals_pkey PRIMARY KEY (id)'],
  'constraints'
);
select set_eq(
  $$select x.indexrelid::regclass::text from pg_index x where x.indrelid = 'pgidem.principals'::regclass$$,
  array['pgidem.principals_pkey'],
  'indexes'
);

select * from finish();
rollback;
