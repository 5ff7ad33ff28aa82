begin;
-- Case 68. It runs with the rights and the search_path of the owner, in front of which another role may plant things.
\ir ../_setup.psql
\ir ../_planted.psql
select plan(2);

create function public.pgidem_test_attach(p_column name) returns text language plpgsql as $$
begin
  set local search_path = planted, pg_catalog;
  call pgidem.attach_principals('pgidem.principals', p_column);
  set local search_path = public;
  return null;
exception
  when others then
    return sqlstate || ' ' || sqlerrm;
end
$$;
select is(pgidem_test_attach('created_at'), '22023 no such table of principals', 'refused as without them');
select is(pgidem_test_attach('id'), null, 'attached as without them');

select * from finish();
rollback;
