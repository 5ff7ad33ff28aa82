begin;
select plan(1);

set local transaction_read_only = on;
select throws_ok($$select pgidem.forget_principal('alice')$$, '25006', null, 'the error of the server');

select * from finish();
rollback;
