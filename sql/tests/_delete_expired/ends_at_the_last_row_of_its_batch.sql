begin;
\ir ../_expired_keys.psql
select plan(6);

prepare batch(timestamptz) as select to_char(p_mark at time zone 'UTC', 'MI'), p_deleted, p_more from pgidem._delete_expired(2, $1);
select results_eq($$execute batch('-infinity')$$, $$values ('02', 2, true)$$, 'two of three');
select is(pg_temp.left_over(:'principal'), '03 04 05', 'the oldest');
select results_eq($$execute batch('2000-03-02 12:02+00')$$, $$values ('03', 1, false)$$, 'the last one');
select is(pg_temp.left_over(:'principal'), '04 05', 'expires_at equal to now has expired');
select results_eq($$execute batch('2000-03-02 12:03+00')$$, $$values ('03', 0, false)$$, 'nothing: the mark stays');
select is(p_mark, '-infinity', 'also that of the beginning') from pgidem._delete_expired(2, '-infinity');

select * from finish();
rollback;
