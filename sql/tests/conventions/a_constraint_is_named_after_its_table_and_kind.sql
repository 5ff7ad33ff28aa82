begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select c.conname::text
from pg_constraint c
join pg_class t on t.oid = c.conrelid
where c.connamespace = 'pgidem'::regnamespace
  and c.contype <> 'n'
  and c.conname !~ ('^' || t.relname || case c.contype
    when 'p' then '_pkey$'
    when 'f' then '_[a-z_]+_fkey$'
    when 'u' then '_[a-z_]+_key$'
    when 'c' then '_[a-z_]+_check$'
  end);

select is_empty('offenders', 'constraints are <table>_pkey, _fkey, _key or _check');

create table pgidem.planted (a integer constraint positive check (a > 0));
select set_eq('offenders', array['positive'], 'another name is found');

select * from finish();
rollback;
