begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.pronargs > 0
  and (p.proargnames is null or exists (select from unnest(p.proargnames) n where n !~ '^p_[a-z]'));

select is_empty('offenders', 'every parameter is named p_...');

create function pgidem.planted(key uuid) returns void language sql return null;
select set_eq('offenders', array['planted'], 'another name is found');

select * from finish();
rollback;
