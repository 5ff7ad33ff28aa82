begin;
\ir ../_alone.psql
select plan(2);

-- A second signature makes old calls ambiguous (42725), and PUBLIC may execute it.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
group by p.proname
having count(*) > 1;

select is_empty('offenders', 'every function has one signature');

create function pgidem.version(p_extra integer default null) returns text language sql return '';
select set_eq('offenders', array['version'], 'a second one is found');

select * from finish();
rollback;
