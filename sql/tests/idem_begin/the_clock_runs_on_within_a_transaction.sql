begin;
-- Case 20: born late in a long transaction, a short-lived row must not be born old.
\ir ../_setup.psql
select plan(2);

select clock_timestamp() as before \gset
select created_at from :begin_key \gset
select ok(:'created_at'::timestamptz > now(), 'created after the transaction began');
select ok(:'created_at'::timestamptz between :'before' and clock_timestamp(), 'at the time of the call');

select * from finish();
rollback;
