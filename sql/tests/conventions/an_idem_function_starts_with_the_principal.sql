begin;
\ir ../_alone.psql
select plan(2);

-- A distributed engine delegates a whole call by that argument, so that gate, row and effect are on one worker.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname like 'idem\_%'
  and concat_ws(' ', p.proargnames[1], p.proargtypes[0]::regtype) not in ('p_principal_id uuid', 'p_user_id text');

select is_empty('offenders', 'the first parameter of an idem_ function is the principal');

create function pgidem.idem_planted(p_key uuid, p_principal_id uuid) returns void language sql return null;
select set_eq('offenders', array['idem_planted'], 'another order is found');

select * from finish();
rollback;
