begin;
-- Expired at each look, alive at each delete: the loop gives up after five times, and nothing is claimed.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
\ir ../_clock_list.psql
select plan(3);

savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{}', null, '2026-03-01 12:00+00', '2026-03-02 12:00+00');
release savepoint another_transaction;

-- Read, delete, insert, read, delete, insert, read ...
select format('set local test.times = %L', array(
  select case when n % 3 = 1 then '2026-03-02 12:00+00' else '2026-03-02 11:00+00' end from generate_series(1, 100) n)) \gexec
select results_eq(
  'select outcome, response_status, retry_after from ' || :'begin_key',
  $$values ('in_progress', null::integer, 1)$$,
  'in_progress, to be repeated'
);
select cmp_ok(currval('readings'), '<=', 20::bigint, 'after five times');
select is((select state from pgidem.idempotency_keys where :this_key), 'completed', 'the row stays');

select * from finish();
rollback;
