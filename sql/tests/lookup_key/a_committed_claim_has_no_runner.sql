begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(2);

savepoint another_transaction;
insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, created_at, expires_at)
values (:'principal', :'key', 'pay', :'fingerprint', clock_timestamp() - interval '1 hour', clock_timestamp() + interval '1 hour');
release savepoint another_transaction;

select results_eq(
  format('select state, live, action, response_status, one_time_secret, running_pid from pgidem.lookup_key(%L, %L)', :'principal', :'key'),
  $$values ('in_progress', true, 'pay', null::integer, false, null::integer)$$,
  'its caller forgot idem_complete'
);
select ok(age between interval '1 hour' and interval '1 hour 5 minutes', 'how long it has stood there')
from pgidem.lookup_key(:'principal', :'key');

select * from finish();
rollback;
