begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

prepare offenders as
select distinct s.name::text
from sources s
join pg_proc p on p.pronamespace = 'pgidem'::regnamespace
where s.code ~ ('(^|[^.\w])' || p.proname || '\s*\(');

select is_empty('offenders', 'every function is called as pgidem.<function>');

create function pgidem.planted() returns void language plpgsql as $$ begin perform _now(); end $$;
select set_eq('offenders', array['planted'], 'a bare name is found');

select * from finish();
rollback;
