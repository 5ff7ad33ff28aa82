begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(2);

select is((pgidem._read(:'principal', :'key', :'fingerprint')).outcome, 'absent', 'no row');
savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{}', null, now() - interval '2 days', now() - interval '1 day');
release savepoint another_transaction;
select results_eq(
  format('select outcome, response_status, response_body from pgidem._read(%L, %L, %L)', :'principal', :'key', :'fingerprint'),
  $$values ('expired', null::integer, null)$$,
  'an expired one, whose response is not given away'
);

select * from finish();
rollback;
