begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and coalesce(obj_description(p.oid, 'pg_proc'), '') = '';

select is_empty('offenders', 'every function and procedure has a comment');

comment on function pgidem._now() is null;
select set_eq('offenders', array['_now'], 'a missing comment is found');

select * from finish();
rollback;
