begin;
\ir ../_setup.psql
select plan(6);

prepare look as
select state, live, running_pid, age is not null as own from pgidem.lookup_key(:'principal', :'key');

select :begin_key \gset
select results_eq('look', format($$values ('in_progress', true, %s, true)$$, pg_backend_pid()), 'this session, which sees its row');
select :complete_key \gset
select results_eq('look', format($$values ('completed', true, %s, true)$$, pg_backend_pid()), 'until the end of the transaction');

update pgidem.idempotency_keys set expires_at = now() - interval '1 hour' where :this_key;
select results_eq('look', format($$values ('in_progress', true, %s, false)$$, pg_backend_pid()), 'running whatever its expires_at says');

savepoint s;
select gen_random_uuid() as other_key \gset
select pgidem.idem_begin(:'principal', :'other_key', 'pay', :'fingerprint') \gset
select is(running_pid, pg_backend_pid(), 'claimed below a savepoint') from pgidem.lookup_key(:'principal', :'other_key');
savepoint s2;
select is(running_pid, pg_backend_pid(), 'seen from another one') from pgidem.lookup_key(:'principal', :'other_key');
rollback to savepoint s;
select is_empty(format('select * from pgidem.lookup_key(%L, %L)', :'principal', :'other_key'), 'gone with the savepoint');

select * from finish();
rollback;
