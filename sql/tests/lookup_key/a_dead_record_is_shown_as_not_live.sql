begin;
\ir ../_record.psql
\ir ../_clock.psql
select plan(4);

insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
values (:'user_id', :'key', :'fingerprint', 1, 1, '2000-03-01 12:10+00', '1 day', '2000-03-01 12:00+00', '2000-03-02 12:10+00');
set local test.now = '2000-03-01 12:09:59.999999+00';
select is(live, true, 'until its last microsecond') from pgidem.lookup_key(:'user_id', :'key');
set local test.now = '2000-03-01 12:10+00';
select is(live, false, 'dead at the very instant') from pgidem.lookup_key(:'user_id', :'key');
select is(state, 'in_progress', 'the worker did not finish') from pgidem.lookup_key(:'user_id', :'key');
select is(running_pid, null, 'and no transaction runs it') from pgidem.lookup_key(:'user_id', :'key');

select * from finish();
rollback;
