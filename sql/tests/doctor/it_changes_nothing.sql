begin;
\ir ../_alone.psql
select plan(3);

set local transaction_read_only = on;
select is(count(*), 20::bigint, 'in a transaction that only reads') from pgidem.doctor();
select is(count(*), 31::bigint, 'stats too') from pgidem.stats();
select is(count(*) >= 0, true, 'and the history') from pgidem.cleanup_runs();

select * from finish();
rollback;
