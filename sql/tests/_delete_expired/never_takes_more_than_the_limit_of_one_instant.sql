begin;
-- A range cannot end between rows of one instant.
\ir ../_expired_records.psql
select plan(8);

select gen_random_uuid() as principal \gset
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, '2000-03-01 12:00+00', '2000-03-02 12:03+00'
from generate_series(1, 5) n;
update pgidem.idempotency_record set expires_at = '2000-03-02 12:03+00' where user_id = :'user_id' and idem_key in ('1', '2');
create temporary view standing as
select (select count(*) from pgidem.idempotency_keys where expires_at < '2000-03-03') || ' ' ||
  (select count(*) from pgidem.idempotency_record where expires_at <= '2000-03-02 12:03+00') as what;

prepare batch as
select to_char(p_mark at time zone 'UTC', 'MI'), p_deleted, p_more from pgidem._delete_expired(3, '2000-03-02 12:03+00');
select results_eq('execute batch', $$values ('03', 3, true)$$, 'three of eight');
select is(what, '2 3', 'keys and records') from standing;
select results_eq('execute batch', $$values ('03', 3, true)$$, 'three more');
select is(what, '0 2', 'keys first') from standing;
select results_eq('execute batch', $$values ('03', 2, false)$$, 'the last two');
select is(what, '0 0', 'nothing is left') from standing;
select results_eq('execute batch', $$values ('03', 0, false)$$, 'nothing to do');
select is(pg_temp.left_over(:'user_id'), '04 05', 'the living stay');

select * from finish();
rollback;
