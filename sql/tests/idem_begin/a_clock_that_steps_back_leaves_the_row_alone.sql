begin;
-- The row had expired when it was read, and lives when it is to be deleted: nothing is deleted, and it answers.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
\ir ../_clock_list.psql
select plan(3);

savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{"amount": 1}', null, '2026-03-01 12:00+00', '2026-03-02 12:00+00');
release savepoint another_transaction;
create temporary table before as select k.ctid::text as place, k.* from pgidem.idempotency_keys k where :this_key;

set local test.times = '{2026-03-02 12:00+00, 2026-03-02 11:00+00}';
select outcome, response_body from :begin_key \gset
select is(:'outcome'::text, 'replay', 'it is not claimed');
select is(:'response_body'::text, '{"amount": 1}', 'the stored response');
select results_eq(
  'select k.ctid::text as place, k.* from pgidem.idempotency_keys k where ' || :'this_key',
  'table before',
  'the row is the same'
);

select * from finish();
rollback;
