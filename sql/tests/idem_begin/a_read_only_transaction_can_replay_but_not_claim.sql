begin;
-- Case 15: 25006 keeps its SQLSTATE.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(5);

select gen_random_uuid() as expired, gen_random_uuid() as fresh, gen_random_uuid() as claimed \gset
savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'expired', 'pay', :'fingerprint', 'completed', 200, '{}', null, now() - interval '2 days', now() - interval '1 day');
release savepoint another_transaction;
select :begin_key \gset
select :complete_key \gset
select pgidem.idem_begin(:'principal', :'claimed', 'pay', :'fingerprint') \gset
set transaction read only;

select is((:begin_key).outcome, 'replay', 'a stored response answers');
select is((:begin_other_request).outcome, 'reused', 'also another request');
select throws_ok(format('select pgidem.idem_begin(%L, %L, %L, %L)', :'principal', :'fresh', 'pay', :'fingerprint'),
  '25006', null, 'a fresh key is 25006');
select throws_ok(format('select pgidem.idem_begin(%L, %L, %L, %L)', :'principal', :'expired', 'pay', :'fingerprint'),
  '25006', null, 'an expired one too');

select throws_ok(format('select pgidem.idem_complete(%L, %L, 200, %L)', :'principal', :'claimed', '{}'), '25006', null,
  'nor can a claim be completed');

select * from finish();
rollback;
