begin;
\ir ../_alone.psql
select plan(2);

prepare offenders as
select p.proname::text
from pg_proc p
cross join substring(obj_description(p.oid, 'pg_proc') from '\nParameters:\n(.*?)\n\n') parameters
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname not like '\_%'
  and array(
    select m.name[1]
    from regexp_matches(parameters, '^([^\s:]+): ', 'gn') with ordinality m (name, place)
    order by m.place
  ) <> coalesce(p.proargnames, '{}');

select is_empty('offenders', 'Parameters has one entry for each, in the order of the signature');

create function pgidem.planted(p_one text, p_two text) returns void language sql return null;
comment on function pgidem.planted is
$$Does nothing.

Parameters:
p_two: nothing.
p_one: nothing.

Returns:
Nothing.$$;
select set_eq('offenders', array['planted'], 'another order is found');

select * from finish();
rollback;
