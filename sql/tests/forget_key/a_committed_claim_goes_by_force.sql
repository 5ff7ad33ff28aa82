begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(2);

savepoint another_transaction;
select :begin_key \gset
release savepoint another_transaction;

select is(pgidem.forget_key(:'principal', :'key', p_force => true), true, 'forgotten');
select is((:begin_key).outcome, 'claimed', 'the next request runs');

select * from finish();
rollback;
