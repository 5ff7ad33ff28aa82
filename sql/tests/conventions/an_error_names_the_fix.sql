begin;
\ir ../_alone.psql
select plan(2);

-- Raise again in a handler, and the internal ID999, apart.
prepare offenders as
select p.proname::text
from pg_proc p
cross join lateral regexp_matches(p.prosrc, '\mraise\M((?:[^;'']|''[^'']*'')*);', 'g') r (statement)
where p.pronamespace = 'pgidem'::regnamespace
  and r.statement[1] !~ '^\s*$'
  and r.statement[1] !~ '^\s*sqlstate ''ID999''$'
  and not (
    r.statement[1] ~ '^ exception using\s'
    and r.statement[1] ~ 'errcode = ''\w+'''
    and r.statement[1] ~ 'message = ''[a-z][^%.]*[^.]'','
    and r.statement[1] ~ 'detail = '
    and r.statement[1] ~ 'hint = ''[A-Z]'
  );

select is_empty('offenders', 'every raise has errcode, message (lower case, no period), detail and hint');

create function pgidem.planted() returns void language plpgsql as $$
begin
  raise exception 'Something went wrong.';
end
$$;
select set_eq('offenders', array['planted'], 'another form is found');

select * from finish();
rollback;
