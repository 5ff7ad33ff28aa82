begin;
\ir ../_expired_records.psql
select plan(6);

select gen_random_uuid() as principal \gset
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null,
  '2000-03-01 12:00+00', '2000-03-02 12:00:30+00'::timestamptz + n * interval '1 minute'
from generate_series(1, 4) n;
set local test.now = '2000-03-02 12:10+00';
create temporary view standing as
select string_agg(what, ' ' order by expires_at) as what
from (
  select 'key ' || to_char(expires_at at time zone 'UTC', 'MI:SS'), expires_at from pgidem.idempotency_keys
  union all
  select 'record ' || to_char(expires_at at time zone 'UTC', 'MI:SS'), expires_at from pgidem.idempotency_record
) s (what, expires_at)
where expires_at < '2000-03-03';

select is(p_deleted, 4, 'a batch of four') from pgidem._delete_expired(4, '-infinity');
select is(what, 'record 03:00 key 03:30 record 04:00 key 04:30 record 05:00', 'two of each table') from standing;
select is(p_deleted, 1, 'a batch of one') from pgidem._delete_expired(1, '-infinity');
select is(what, 'key 03:30 record 04:00 key 04:30 record 05:00', 'a record before a key') from standing;
select is(p_deleted, 4, 'the rest') from pgidem._delete_expired(5, '-infinity');
select is(what, null, 'nothing is left') from standing;

select * from finish();
rollback;
