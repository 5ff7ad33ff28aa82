begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

-- On a distributed engine only constants and variables may stand there.
prepare offenders as
select s.name::text, c.called[1]
from sources s
cross join lateral regexp_matches(s.code, '\mon\s+conflict\M[^;]*\mwhere\M([^;]*)', 'gi') t (condition)
cross join lateral regexp_matches(t.condition[1], '([a-z0-9_]+)\s*\(', 'gi') c (called)
where c.called[1] !~* '^(and|or|not|in|where)$';

select is_empty('offenders', 'no condition of on conflict calls a function');

create function pgidem.planted() returns void language plpgsql as $$
begin
  insert into pgidem.settings as s default values
  on conflict on constraint settings_pkey do update set lease = excluded.lease
  where (s.lease < excluded.lease) and now() > clock_timestamp();
end
$$;
select set_eq('offenders', $$values ('planted', 'now'), ('planted', 'clock_timestamp')$$, 'two calls are found');

select * from finish();
rollback;
