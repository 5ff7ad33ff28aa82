begin;
-- More rows may have the instant where the last batch ended. What lies before it is for the next run.
\ir ../_expired_keys.psql
select plan(3);

select is(p_deleted, 2, '12:02 and 12:03') from pgidem._delete_expired(10, '2000-03-02 12:02+00');
select is(pg_temp.left_over(:'principal'), '01 04 05', 'not 12:01');
insert into pgidem.idempotency_keys
values (:'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, '2000-03-01 12:00+00', '2000-03-02 12:03+00');
select is(p_deleted, 1, 'one that became visible at the instant of the mark') from pgidem._delete_expired(10, '2000-03-02 12:03+00');

select * from finish();
rollback;
