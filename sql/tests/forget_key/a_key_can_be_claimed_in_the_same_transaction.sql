begin;
\ir ../_stored_key.psql
select plan(4);

select is(pgidem.forget_key(:'principal', :'key'), true, 'forgotten');
select is((:begin_other_request).outcome, 'claimed', 'claimed, by another request');
select throws_ok(format('select pgidem.forget_key(%L, %L)', :'principal', :'key'), 'ID002', null, 'now it runs');
select is(:complete_key, '{"amount": 1}', 'and is completed');

select * from finish();
rollback;
