begin;
-- C1, and case 17: larger, not one larger.
select plan(4);

select extract(epoch from clock_timestamp()) * 1000000 as before \gset
select ok(pgidem._next_token(null) between floor(:before) and extract(epoch from clock_timestamp()) * 1000000, 'microseconds of the clock');
select ok(pgidem._next_token(1) >= floor(:before), 'also where there was a token');
select is(pgidem._next_token(9000000000000000), 9000000000000001, 'one larger than one that is ahead of the clock');
select cmp_ok(pgidem._next_token(null), '<', (2::numeric ^ 53)::bigint, 'a double holds it');

select * from finish();
rollback;
