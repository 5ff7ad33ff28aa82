begin;
select plan(1);

select is(
  (
    select string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod)) collate "default", E'\n' order by a.attnum)
    from pg_attribute a
    where a.attrelid = 'pgidem.diagnosis'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  concat_ws(E'\n', 'check_name text', 'status text', 'detail text', 'mend text'),
  'names and types in this order'
);

select * from finish();
rollback;
