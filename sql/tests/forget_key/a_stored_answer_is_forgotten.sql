begin;
\ir ../_stored_key.psql
select plan(4);

select is((:begin_key).outcome, 'replay', 'before');
select is(pgidem.forget_key(:'principal', :'key'), true, 'there was something to forget');
select is(pgidem.forget_key(:'principal', :'key'), false, 'once');
select is((:begin_key).outcome, 'claimed', 'after');

select * from finish();
rollback;
