begin;
-- In interleave tests it waits.
\ir ../_record.psql
select plan(3);

set local lock_timeout = '7s';
select pgidem._queue(pgidem._record_gate(:'user_id', :'key'), clock_timestamp() + interval '1 second') as free \gset
select ok(:'free', 'a free gate is not waited for');
select is_empty($$select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and objsubid = 1$$, 'nor taken');
select is(current_setting('lock_timeout'), '7s', 'and the limit of the caller is as before');

select * from finish();
rollback;
