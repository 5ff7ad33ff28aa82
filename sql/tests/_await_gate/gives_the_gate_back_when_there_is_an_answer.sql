begin;
\ir ../_setup.psql
select plan(2);

insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{}', null, now(), now() + interval '1 day');
select is((pgidem._await_gate(:'principal', :'key', :'fingerprint', clock_timestamp() + interval '1 second')).outcome, 'replay',
  'the answer');
select is_empty($$select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'$$, 'no waiter is held up');

select * from finish();
rollback;
