begin;
\ir ../_record.psql
\ir ../_clock.psql
select plan(3);

prepare look as
select table_name, state, live, running_pid, age is not null as own from pgidem.lookup_key(:'user_id', :'key');

set local test.now = '2000-03-01 12:00+00';
savepoint s;
select :claim_key \gset
select results_eq('look', format($$values ('idempotency_record', 'in_progress', true, %s, true)$$, pg_backend_pid()), 'this session, which sees its row');
set local test.now = '2000-03-01 13:00+00';
select results_eq('look', format($$values ('idempotency_record', 'in_progress', true, %s, false)$$, pg_backend_pid()), 'running whatever its lease says');
rollback to savepoint s;
select is_empty('look', 'gone with the savepoint');

select * from finish();
rollback;
