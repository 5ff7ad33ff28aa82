begin;
\ir ../_setup.psql
select plan(1);

select :begin_key, :complete_key \gset
select is(state, 'completed', 'upper case') from pgidem.lookup_key(upper(:'principal'), upper(:'key'));

select * from finish();
rollback;
