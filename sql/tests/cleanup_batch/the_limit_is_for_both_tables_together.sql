begin;
\ir ../_expired_records.psql
select plan(7);

select gen_random_uuid() as principal \gset
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, '2000-03-01 12:00+00', '2000-03-02 12:00+00'
from generate_series(1, 3);
create function pg_temp.left_over_keys(uuid) returns integer language sql as
  'select count(*)::integer from pgidem.idempotency_keys where principal_id = $1';

select is(pgidem.cleanup_batch(2), 2, 'keys first');
select is(pg_temp.left_over_keys(:'principal') || ' key, records ' || pg_temp.left_over(:'user_id'), '1 key, records 01 02 03 04 05', 'no record yet');
select is(pgidem.cleanup_batch(2), 2, 'what is left of the limit is for records');
select is(pg_temp.left_over_keys(:'principal') || ' keys, records ' || pg_temp.left_over(:'user_id'), '0 keys, records 02 03 04 05', 'one of each');
select is(pgidem.cleanup_batch(3), 2, 'the rest, and no full batch');
select is(pg_temp.left_over(:'user_id'), '04 05', 'the living stay');
select is(pgidem.cleanup_batch(3), 0, 'nothing left to do');

select * from finish();
rollback;
