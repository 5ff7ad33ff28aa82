begin;
\ir ../_alone.psql
select plan(2);

-- Case 15: cancel, deadlock, read-only, permission and serialisation errors go up unchanged. ID999 is our own, raised
-- and caught in one function to undo a subtransaction.
prepare offenders as
select p.proname::text, h.condition[1]
from pg_proc p
cross join lateral regexp_matches(p.prosrc, '\mwhen\s+((?![pvrc]_)\w+|sqlstate\s+''\w+''|[^;]*\mor\M[^;]*?)\s+then\M', 'gi') h (condition)
where p.pronamespace = 'pgidem'::regnamespace
  and (p.proname like 'idem\_%' or p.proname like '\_%')
  and p.prosrc ~* '\mexception\s+when\M'
  and h.condition[1] not in ('lock_not_available', 'sqlstate ''ID999''');

select is_empty('offenders', 'no handler but for lock_not_available and our own ID999');

create function pgidem._planted() returns void language plpgsql as $$
begin
  perform 1;
exception
  when others then
    null;
end
$$;
select set_eq('offenders', $$values ('_planted', 'others')$$, 'a handler for others is found');

select * from finish();
rollback;
