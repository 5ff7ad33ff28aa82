begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select t.tgname::text
from pg_trigger t
join pg_class c on c.oid = t.tgrelid
where c.relnamespace = 'pgidem'::regnamespace
  and not t.tgisinternal
union all
select r.rulename
from pg_rewrite r
join pg_class c on c.oid = r.ev_class
where c.relnamespace = 'pgidem'::regnamespace
  and c.relkind <> 'v';

select is_empty('offenders', 'no table has a trigger of its own or a rule');

create table pgidem.planted (a integer);
create trigger planted_trigger before update on pgidem.planted
for each row execute function suppress_redundant_updates_trigger();
create rule planted_rule as on delete to pgidem.planted do instead nothing;
select set_eq('offenders', array['planted_rule', 'planted_trigger'], 'both are found');

select * from finish();
rollback;
