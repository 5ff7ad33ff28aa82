begin;
\ir ../_setup.psql
select plan(1);

set local transaction_read_only = on;
select throws_ok(format('select pgidem.forget_key(%L, %L)', :'principal', :'key'), '25006', null, 'the error of the server');

select * from finish();
rollback;
