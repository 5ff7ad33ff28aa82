begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

-- set_config costs more; a SET without LOCAL outlives the transaction.
prepare offenders as
select s.name::text
from sources s
where s.code ~* '\mset_config\s*\('
   or s.code ~* '\mset\s+(session\s+)?(\w+_timeout|search_path|enable_\w+)\M[^;\n]*;';

select is_empty('offenders', 'no function calls set_config or SET without LOCAL');

create function pgidem.planted_call() returns text language sql return set_config('lock_timeout', '7s', true);
create function pgidem.planted_set() returns void language plpgsql as $$ begin set lock_timeout = '7s'; end $$;
select set_eq('offenders', array['planted_call', 'planted_set'], 'both are found');

select * from finish();
rollback;
