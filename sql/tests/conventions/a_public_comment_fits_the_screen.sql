begin;
\ir ../_alone.psql
select plan(2);

-- psql breaks no line of a comment by itself.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname not like '\_%'
  and exists (
    select from string_to_table(obj_description(p.oid, 'pg_proc'), E'\n') line
    where length(line) > 100 or line ~ '\s$'
  );

select is_empty('offenders', 'lines of 100 characters at most, without blanks at the end');

create function pgidem.planted() returns void language sql return null;
do $$ begin execute format('comment on function pgidem.planted is %L', repeat('word ', 20) || 'word.'); end $$;
select set_eq('offenders', array['planted'], 'a longer line is found');

select * from finish();
rollback;
