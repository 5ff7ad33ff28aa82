begin;
\ir ../_expired_records.psql
select plan(6);

select is(pgidem.cleanup_batch(2), 2, 'a full batch: call again');
select is(pg_temp.left_over(:'user_id'), '03 04 05', 'the oldest two are gone');
update pgidem.idempotency_record set state = 'in_progress', response_status = null, finished_at = null
where user_id = :'user_id' and idem_key = '3';
select is(pgidem.cleanup_batch(2), 1, 'expires_at equal to now has expired, in any state');
select is(pg_temp.left_over(:'user_id'), '04 05', 'the others stay, dead or not');
select is(pgidem.cleanup_batch(), 0, 'nothing left to do');
set local test.now = '2000-03-02 12:05+00';
select is(pgidem.cleanup_batch(), 2, 'until their time comes');

select * from finish();
rollback;
