begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select c.conname::text
from pg_constraint c
where c.connamespace = 'pgidem'::regnamespace
  and c.contype <> 'n'
  and coalesce(obj_description(c.oid, 'pg_constraint'), '') = '';

select is_empty('offenders', 'every constraint has a comment (not null apart)');

create table pgidem.planted (a integer constraint planted_a_check check (a > 0));
select set_eq('offenders', array['planted_a_check'], 'a missing comment is found');

select * from finish();
rollback;
