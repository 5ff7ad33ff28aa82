begin;
-- Case 15: 25006 keeps its SQLSTATE.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(4);

select gen_random_uuid() as expired, gen_random_uuid() as fresh \gset
savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'expired', 'pay', :'fingerprint', 'completed', 200, '{}', null, now() - interval '2 days', now() - interval '1 day');
release savepoint another_transaction;
select :begin_key \gset
select :complete_key \gset
set transaction read only;

select is((:begin_key).outcome, 'replay', 'a stored response answers');
select is((:begin_other_request).outcome, 'reused', 'also another request');
select throws_ok(format('select pgidem.idem_begin(%L, %L, %L, %L)', :'principal', :'fresh', 'pay', :'fingerprint'),
  '25006', null, 'a fresh key is 25006');
select throws_ok(format('select pgidem.idem_begin(%L, %L, %L, %L)', :'principal', :'expired', 'pay', :'fingerprint'),
  '25006', null, 'an expired one too');

select * from finish();
rollback;
