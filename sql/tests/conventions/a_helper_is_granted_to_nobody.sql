begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select distinct p.proname::text
from pg_proc p
cross join lateral aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname like '\_%'
  and a.grantee <> p.proowner;

select is_empty('offenders', 'only the owner may execute a helper');

grant execute on function pgidem._read to pg_monitor;
select set_eq('offenders', array['_read'], 'a grant is found');

select * from finish();
rollback;
