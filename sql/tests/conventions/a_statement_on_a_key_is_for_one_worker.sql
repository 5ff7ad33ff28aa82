begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

-- Where the tables are distributed by principal, a statement goes to one worker when it says whose the key is; and a ctid
-- means nothing across workers. The cleanup, which asks them all, has no principal.
prepare offenders as
select distinct s.name::text
from sources s
join pg_proc p on p.pronamespace = 'pgidem'::regnamespace and p.proname = s.name
cross join lateral regexp_matches(s.code, '\m(?:from|update|join)\s+(?:only\s+)?pgidem\.(?:idempotency_keys|idempotency_record)\M[^;]*', 'gi') t (statement)
where p.proargnames && array['p_principal_id', 'p_user_id']
  and (t.statement[1] !~ '\m(principal_id|user_id) = (p|v)_(principal_id|user_id)\M' or t.statement[1] ~* '\mctid\M');

select is_empty('offenders', 'every statement on a key says whose it is');

create function pgidem.planted(p_principal_id uuid, p_key uuid) returns void language plpgsql as $$
begin
  delete from pgidem.idempotency_keys k where k.principal_id = p_principal_id and k.key = p_key;
  update pgidem.idempotency_keys k set state = '' where k.key = p_key;
end
$$;
create function pgidem.planted_place(p_principal_id uuid) returns void language plpgsql as $$
begin
  delete from pgidem.idempotency_keys k where k.principal_id = p_principal_id and k.ctid = '(0,1)';
end
$$;
select set_eq('offenders', array['planted', 'planted_place'], 'one without it, and one with a ctid, are found');

select * from finish();
rollback;
