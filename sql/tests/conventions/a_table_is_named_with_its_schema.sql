begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

prepare offenders as
select distinct s.name::text
from sources s
join pg_class c on c.relnamespace = 'pgidem'::regnamespace and c.relkind = 'r'
where s.code ~* ('\m(from|join|into|update|only|table)\s+' || c.relname || '\M');

select is_empty('offenders', 'every table is written pgidem.<table>');

create function pgidem.planted() returns void language plpgsql as $$ begin delete from settings; end $$;
select set_eq('offenders', array['planted'], 'a bare name is found');

select * from finish();
rollback;
