begin;
\ir ../_alone.psql
select plan(3);

select is(pgidem._group_functions('nobody'), null, 'no function for another group');
select ok((pgidem._group_functions('app'))[1] <> all (pgidem._group_functions('operator')), 'the anchor of app stands in no other group');
select ok((pgidem._group_functions('operator'))[1] <> all (pgidem._group_functions('app')), 'nor that of operator');

select * from finish();
rollback;
