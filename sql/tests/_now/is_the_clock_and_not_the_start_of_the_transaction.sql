begin;
select plan(2);

select clock_timestamp() as before \gset
select pgidem._now() as reading \gset
select ok(:'reading'::timestamptz between :'before' and clock_timestamp(), 'between two readings of the clock');
select ok(:'reading'::timestamptz > now(), 'after the transaction began');

select * from finish();
rollback;
