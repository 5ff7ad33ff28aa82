begin;
\ir ../_alone.psql
select plan(4);

-- What the function does; then, each after a blank line and under its heading, the parts that it has.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.proname not like '\_%'
  and (
    obj_description(p.oid, 'pg_proc') !~ concat(
      '^[A-Z].*\n',
      case when p.pronargs > 0 then '\nParameters:\np_.*\n' end,
      '\n(Outcomes:\n[a-z_]+: |Returns:\n[A-Z]).*\n',
      '\nErrors:\n([0-9A-Z]{5}: .*|None of its own\.)\n',
      '\nExample:\n-- as (the application|an operator|the owner)\n.*\S$'
    )
    -- No other heading, and none twice.
    or (
      select count(*)
      from regexp_matches(obj_description(p.oid, 'pg_proc'), '^[A-Z][a-z]*:$', 'gn')
    ) <> 3 + (p.pronargs > 0)::integer
  );

select is_empty('offenders', 'what it does, Parameters if it has any, Outcomes or Returns, Errors, Example');

create function pgidem.planted(p_one text) returns void language sql return null;
comment on function pgidem.planted is
$$Does nothing.

Parameters:
p_one: nothing.

Returns:
Nothing.

Errors:
None of its own.

Example:
-- as the owner
select pgidem.planted('one');$$;
select is_empty('offenders', 'this is the form');

comment on function pgidem.planted is
$$Does nothing.

Parameters:
p_one: nothing.

Errors:
None of its own.

Example:
-- as the owner
select pgidem.planted('one');$$;
select set_eq('offenders', array['planted'], 'a missing part is found');

comment on function pgidem.planted is
$$Does nothing.

Parameters:
p_one: nothing.

Returns:
Nothing.

Errors:
None of its own.

Notes:
None.

Example:
-- as the owner
select pgidem.planted('one');$$;
select set_eq('offenders', array['planted'], 'and so is one too many');

select * from finish();
rollback;
