begin;
select plan(2);

select rtrim(pgidem._wait_limit(clock_timestamp() + interval '10 seconds'), 'ms')::integer as left_over \gset
select ok(:left_over between 1 and 10000, 'no more than was given');
set local lock_timeout = '7s';
select format('set local lock_timeout = %L', pgidem._wait_limit(clock_timestamp() + interval '1 hour')) \gexec
select ok(current_setting('lock_timeout') <> '7s', 'in the form that lock_timeout takes');

select * from finish();
rollback;
