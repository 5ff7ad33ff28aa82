begin;
-- M3. Should expires_at ever say less than live_until, against the constraint, then live_until decides.
\ir ../_expired_records.psql
select plan(3);

alter table pgidem.idempotency_record drop constraint idempotency_record_expires_at_check;
update pgidem.idempotency_record set live_until = '2000-03-02 12:03:00.000001+00' where user_id = :'user_id' and idem_key in ('1', '2');
update pgidem.idempotency_record set state = 'in_progress', response_status = null, finished_at = null where user_id = :'user_id' and idem_key = '1';
select is(pgidem.cleanup_batch(), 1, 'the dead one');
select is(pg_temp.left_over(:'user_id'), '01 02 04 05', 'a running lease and a stored response stay');
set local test.now = '2000-03-02 12:03:00.000001+00';
select is(pgidem.cleanup_batch(), 2, 'until they are over');

select * from finish();
rollback;
