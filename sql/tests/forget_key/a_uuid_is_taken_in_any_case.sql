begin;
\ir ../_stored_key.psql
select plan(1);

select is(pgidem.forget_key(upper(:'principal'), upper(:'key')), true, 'upper case');

select * from finish();
rollback;
