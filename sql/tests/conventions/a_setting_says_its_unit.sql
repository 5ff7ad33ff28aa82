begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select a.attname::text
from pg_attribute a
where a.attrelid = 'pgidem.settings'::regclass
  and a.attnum > 0
  and not a.attisdropped
  and a.attname <> 'singleton'
  and col_description(a.attrelid, a.attnum) !~ '\. Unit: [a-z, ]+\.$';

select is_empty('offenders', 'the comment of a setting ends with its unit');

comment on column pgidem.settings.lease is 'How long a claim holds.';
select set_eq('offenders', array['lease'], 'one without a unit is found');

select * from finish();
rollback;
