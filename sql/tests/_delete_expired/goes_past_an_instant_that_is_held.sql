begin;
-- Records that live stand here for rows that another session holds: neither form can delete them.
\ir ../_expired_records.psql
select plan(3);

alter table pgidem.idempotency_record drop constraint idempotency_record_expires_at_check;
update pgidem.idempotency_record set live_until = '2000-03-02 13:00+00', expires_at = '2000-03-02 12:02+00'
where user_id = :'user_id' and idem_key in ('1', '2', '3');
prepare batch(timestamptz) as select to_char(p_mark at time zone 'UTC', 'MI'), p_deleted, p_more from pgidem._delete_expired(2, $1);
select results_eq($$execute batch('-infinity')$$, $$values ('02', 0, true)$$, 'the batch came to that instant');
select results_eq($$execute batch('2000-03-02 12:02+00')$$, $$values ('02', 0, false)$$, 'behind it nothing has expired');
set local test.now = '2000-03-02 12:04+00';
select results_eq($$execute batch('2000-03-02 12:02+00')$$, $$values ('04', 0, true)$$, 'and now something has');

select * from finish();
rollback;
