begin;
\ir ../_setup.psql
select plan(1);

select :begin_key \gset
select is(pgidem.idem_complete(:'principal', :'key', 201, '{"amount": 1}', null), '{"amount": 1}', 'the body is stored');

select * from finish();
rollback;
