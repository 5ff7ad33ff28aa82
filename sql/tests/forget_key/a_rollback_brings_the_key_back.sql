begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(5);

savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{}', null, now(), now() + interval '1 hour');
release savepoint another_transaction;

select is(pgidem._runner(pgidem._gate(:'principal', :'key')), null, 'nobody has the gate');
savepoint s;
select is(pgidem.forget_key(:'principal', :'key'), true, 'forgotten');
select is(pgidem._runner(pgidem._gate(:'principal', :'key')), pg_backend_pid(), 'behind the gate, so that nobody claims it meanwhile');
rollback to savepoint s;
select is((:begin_key).outcome, 'replay', 'the answer is back');
select is(pgidem._runner(pgidem._gate(:'principal', :'key')), null, 'and the gate is free');

select * from finish();
rollback;
