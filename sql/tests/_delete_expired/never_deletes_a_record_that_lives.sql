begin;
-- M3, by range and row by row. Should expires_at ever say less than live_until, against the constraint, then live_until decides.
\ir ../_expired_records.psql
select plan(4);

alter table pgidem.idempotency_record drop constraint idempotency_record_expires_at_check;
update pgidem.idempotency_record
set state = 'in_progress', response_status = null, finished_at = null, live_until = '2000-03-02 12:04+00', expires_at = '2000-03-02 12:01+00'
where user_id = :'user_id' and idem_key in ('1', '2', '3');
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, response_status, finished_at, live_until, retention, created_at, expires_at)
select :'user_id', 'dead ' || n, :'fingerprint', 1, 1, 'completed', 200, '2000-03-01 12:00+00', '2000-03-02 12:00+00', '1 day', '2000-03-01 12:00+00',
  '2000-03-02 12:01+00'
from generate_series(1, 3) n;

select is(p_deleted, 2, 'row by row') from pgidem._delete_expired(2, '-infinity');
select is(p_deleted, 1, 'by range') from pgidem._delete_expired(10, '-infinity');
select set_eq(
  format('select idem_key from pgidem.idempotency_record where user_id = %L', :'user_id'),
  array['1', '2', '3', '4', '5'],
  'those that run, and those whose time has not come'
);
set local test.now = '2000-03-02 12:04+00';
select is(p_deleted, 4, 'until they are over') from pgidem._delete_expired(10, '-infinity');

select * from finish();
rollback;
