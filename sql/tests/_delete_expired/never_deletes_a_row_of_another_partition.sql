begin;
-- Rows of two partitions have the same ctid.
\ir ../_setup.psql
\ir ../_clock.psql
select plan(2);

alter table pgidem.idempotency_keys rename to plain;
create table pgidem.idempotency_keys (like pgidem.plain) partition by list (state);
create table pgidem.running partition of pgidem.idempotency_keys for values in ('in_progress');
create table pgidem.done partition of pgidem.idempotency_keys for values in ('completed');
create index on pgidem.idempotency_keys (expires_at);
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, '2000-03-01 12:00+00', '2000-03-02 12:00+00'
from generate_series(1, 8) n;
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'in_progress', null, null, null, '2000-03-01 12:00+00', '2000-03-02 13:00+00'
from generate_series(1, 8) n;
set local test.now = '2000-03-02 12:01+00';

select is(p_deleted, 5, 'of eight of one instant') from pgidem._delete_expired(5, '-infinity');
select results_eq('select state, count(*) from pgidem.idempotency_keys group by state order by state',
  $$values ('completed', 3::bigint), ('in_progress', 8::bigint)$$, 'the living stay');

select * from finish();
rollback;
