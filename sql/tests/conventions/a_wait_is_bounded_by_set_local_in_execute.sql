begin;
\ir ../_alone.psql
select plan(2);

-- A distributed engine sends that to the worker where the wait is; set_config it does not. The COMMIT of the cleanup is where the
-- step is.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and (
    regexp_replace(
      replace(p.prosrc, 'set local synchronous_commit = off;', ''),
      'execute format\(''set local lock_timeout = %L'', pgidem\._wait_limit\(\w+\)\);', '', 'g'
    ) ~* '\mset\s+local\M'
    or p.prosrc ~* '\mset_config\M'
  );

select is_empty('offenders', 'lock_timeout is set by execute format(set local ...) and nothing else is');

create function pgidem.planted() returns void language plpgsql as $$ begin set local lock_timeout = '7s'; end $$;
select set_eq('offenders', array['planted'], 'another form is found');

select * from finish();
rollback;
