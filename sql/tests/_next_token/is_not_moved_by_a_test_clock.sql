begin;
-- Nor by the start of the transaction.
\ir ../_clock.psql
select plan(2);

set local test.now = '2000-01-01 00:00+00';
select extract(epoch from clock_timestamp()) * 1000000 as before \gset
select pgidem._next_token(null) as token \gset
select cmp_ok(:token::numeric, '>=', floor(:before), 'the clock of the server');
select cmp_ok(pgidem._next_token(null), '>', (extract(epoch from now()) * 1000000)::bigint, 'which runs on');

select * from finish();
rollback;
