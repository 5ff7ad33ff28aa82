begin;
select plan(1);

select throws_ok('select pgidem.register_principal(null)', '22023', 'invalid argument', 'null is nobody');

select * from finish();
rollback;
