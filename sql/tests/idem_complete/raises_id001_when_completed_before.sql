begin;
-- Case 47.
\ir ../_setup.psql
select plan(2);

prepare again as select pgidem.idem_complete(:'principal', :'key', 200, '{"amount": 2}');

select :begin_key \gset
select :complete_key \gset
select throws_ok('again', 'ID001', null, 'a second time');
select is((:begin_key).response_body, '{"amount": 1}', 'the first response stays');

select * from finish();
rollback;
