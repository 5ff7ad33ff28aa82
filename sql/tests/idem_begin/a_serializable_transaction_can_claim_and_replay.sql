begin isolation level serializable;
\ir ../_setup.psql
select plan(3);

select is((:begin_key).outcome, 'claimed', 'claimed');
select is(:complete_key, '{"amount": 1}', 'completed');
select is((:begin_key).outcome, 'replay', 'replayed');

select * from finish();
rollback;
