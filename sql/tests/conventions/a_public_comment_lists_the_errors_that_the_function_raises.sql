begin;
\ir ../_alone.psql
select plan(2);

-- Of the function itself and of what it calls. idem_save_final completes the claim that it made: it never meets ID001.
prepare offenders as
with recursive body (public_name, comment, source) as (
  select p.proname::text, obj_description(p.oid, 'pg_proc'), p.prosrc
  from pg_proc p
  where p.pronamespace = 'pgidem'::regnamespace
    and p.proname not like '\_%'
  union
  select b.public_name, b.comment, p.prosrc
  from body b
  join pg_proc p on p.pronamespace = 'pgidem'::regnamespace
    and regexp_replace(b.source, '''[^'']*''', '''''', 'g') ~ ('\mpgidem\.' || p.proname || '\(')
),
raised (public_name, comment, code) as (
  select distinct b.public_name, b.comment,
    case m.name[1]
      when 'invalid_parameter_value' then '22023'
      when 'insufficient_privilege' then '42501'
      when 'object_not_in_prerequisite_state' then '55000'
      else m.name[1]
    end
  from body b
  cross join regexp_matches(b.source, 'errcode = ''(\w+)''', 'g') m (name)
)
select r.public_name, r.code
from raised r
where substring(r.comment from '\nErrors:\n(.*)\n\nExample:') !~ ('(?n)^' || r.code || ': ')
  and (r.public_name, r.code) <> ('idem_save_final', 'ID001');

select is_empty('offenders', 'every code that a raise names stands under Errors');

create function pgidem.planted() returns void language plpgsql as $$
begin
  raise exception using errcode = 'ID999';
end
$$;
comment on function pgidem.planted is
$$Does nothing.

Errors:
22023: never.

Example:
select pgidem.planted();$$;
select set_eq('offenders', $$values ('planted', 'ID999')$$, 'one that is missing is found');

select * from finish();
rollback;
