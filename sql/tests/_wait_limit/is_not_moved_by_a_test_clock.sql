begin;
\ir ../_clock.psql
select plan(1);

set local test.now = '2000-01-01 00:00+00';
select ok(rtrim(pgidem._wait_limit(clock_timestamp() + interval '1 second'), 'ms')::integer <= 1000, 'a bound is real time');

select * from finish();
rollback;
