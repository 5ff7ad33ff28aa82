begin;
\ir ../_alone.psql
select plan(2);

-- The results of a procedure, which has no other way to return them, have the names and types of the function's.
prepare offenders as
select p.proname::text
from pg_proc p
where p.pronamespace = 'pgidem'::regnamespace
  and p.pronargs > 0
  and (
    p.proargnames is null
    or exists (
      select
      from unnest(p.proargnames, p.proargmodes, p.proargtypes) a (name, mode, type)
      where a.name !~ '^p_[a-z]'
        and not (
          p.prokind = 'p'
          and a.mode = 'b'
          and exists (
            select
            from pg_attribute r
            where r.attrelid in (select t.typrelid from pg_type t where t.typnamespace = 'pgidem'::regnamespace and t.typname ~ '_result$')
              and r.attname = a.name
              and r.atttypid = a.type
          )
        )
    )
  );

select is_empty('offenders', 'every parameter is named p_...');

create function pgidem.planted(key uuid) returns void language sql return null;
create function pgidem.planted_result(inout outcome text) language sql return outcome;
create procedure pgidem.planted_name(inout answer text) language plpgsql as 'begin end';
create procedure pgidem.planted_type(inout outcome integer) language plpgsql as 'begin end';
select set_eq('offenders', array['planted', 'planted_result', 'planted_name', 'planted_type'], 'another name or type is found');

select * from finish();
rollback;
