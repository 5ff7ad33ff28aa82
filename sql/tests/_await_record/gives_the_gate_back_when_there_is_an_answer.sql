begin;
\ir ../_record.psql
select plan(2);

insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
values (:'user_id', :'key', :'fingerprint', 1, 1, now() + interval '1 hour', '1 day', now(), now() + interval '1 day');
select is((pgidem._await_record(:'user_id', :'key', :'fingerprint', null, clock_timestamp() + interval '1 second')).outcome, 'in_progress',
  'the answer');
select is_empty($$select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and objsubid = 1$$, 'no waiter is held up');

select * from finish();
rollback;
