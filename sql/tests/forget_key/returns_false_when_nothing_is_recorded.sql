begin;
\ir ../_setup.psql
select plan(3);

select is(pgidem.forget_key(:'principal', :'key'), false, 'a key that nobody used');
select is(pgidem.forget_key(:'principal', :'key', true), false, 'by force');

savepoint s;
select :begin_key \gset
rollback to savepoint s;
select is(pgidem.forget_key(:'principal', :'key'), false, 'a claim that was undone');

select * from finish();
rollback;
