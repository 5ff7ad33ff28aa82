begin;
\ir ../_expired_records.psql
select plan(3);

select gen_random_uuid() as principal \gset
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, '2000-03-01 12:00+00', '2000-03-02 12:09+00'
from generate_series(1, 8) n;
set local test.now = '2000-03-02 12:10+00';
prepare batch(timestamptz) as select to_char(p_mark at time zone 'UTC', 'MI'), p_deleted, p_more from pgidem._delete_expired(7, $1);

select results_eq($$execute batch('-infinity')$$, $$values ('09', 7, true)$$, 'the records, which are older, and two of eight keys');
select is((select count(*) from pgidem.idempotency_record where expires_at < '2000-03-02 12:10+00'), 0::bigint, 'no older record is left');
select results_eq($$execute batch('2000-03-02 12:09+00')$$, $$values ('09', 6, false)$$, 'and the other keys');

select * from finish();
rollback;
