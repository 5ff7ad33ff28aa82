begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

-- On a distributed engine each worker would compute it anew: compute v_now and the like first.
prepare offenders as
select distinct s.name::text, c.called[1]
from sources s
cross join lateral regexp_matches(s.code, '\m(?:update|delete\s+from)\M[^;]*', 'gi') t (statement)
cross join lateral regexp_matches(t.statement[1], '([a-z0-9_]+)\s*\(', 'gi') c (called)
where exists (
  select
  from pg_proc p
  where p.proname = c.called[1]
    and p.pronamespace in ('pg_catalog'::regnamespace, 'pgidem'::regnamespace)
    and p.provolatile = 'v'
);

select is_empty('offenders', 'no update or delete calls a volatile function');

create function pgidem.planted() returns void language plpgsql as $$
begin
  delete from pgidem.idempotency_keys k where k.expires_at <= pgidem._now();
  update pgidem.idempotency_keys k set expires_at = clock_timestamp();
end
$$;
select set_eq('offenders', $$values ('planted', '_now'), ('planted', 'clock_timestamp')$$, 'two calls are found');

select * from finish();
rollback;
