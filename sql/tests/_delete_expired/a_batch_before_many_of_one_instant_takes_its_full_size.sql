begin;
\ir ../_expired_keys.psql
select plan(4);

insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, '2000-03-01 12:00+00', '2000-03-02 12:02+00'
from generate_series(1, 3) n;
prepare batch(timestamptz) as select to_char(p_mark at time zone 'UTC', 'MI'), p_deleted, p_more from pgidem._delete_expired(3, $1);
select results_eq($$execute batch('-infinity')$$, $$values ('02', 3, true)$$, 'one of 12:01 and two of 12:02');
select is(pg_temp.left_over(:'principal'), '02 02 03 04 05', 'oldest first');
select results_eq($$execute batch('2000-03-02 12:02+00')$$, $$values ('03', 3, false)$$, 'the rest of 12:02, and 12:03');
select is(pg_temp.left_over(:'principal'), '04 05', 'the living stay');

select * from finish();
rollback;
