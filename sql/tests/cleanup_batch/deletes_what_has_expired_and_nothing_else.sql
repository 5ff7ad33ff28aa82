begin;
\ir ../_expired_keys.psql
select plan(2);

select is(pgidem.cleanup_batch(), 3, 'those of 12:01 to 12:03: expires_at equal to now has expired');
select is(pg_temp.left_over(:'principal'), '04 05', 'the living stay');

select * from finish();
rollback;
