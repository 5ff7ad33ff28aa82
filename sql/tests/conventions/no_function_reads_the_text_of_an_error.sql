begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

-- Case 11: the text follows lc_messages, the SQLSTATE does not.
prepare offenders as
select s.name::text from sources s where s.code ~* '\m(sqlerrm|message_text|pg_exception_\w+)\M';

select is_empty('offenders', 'errors are told apart by SQLSTATE');

create function pgidem.planted() returns void language plpgsql as $$
begin
  perform 1;
exception
  when lock_not_available then
    if sqlerrm like '%lock timeout%' then
      raise;
    end if;
end
$$;
select set_eq('offenders', array['planted'], 'a look at the text is found');

select * from finish();
rollback;
