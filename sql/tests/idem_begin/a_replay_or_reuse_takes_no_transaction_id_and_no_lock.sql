begin;
-- Case 70 and H4. A transaction with an id of its own holds a lock on it, and so does a subtransaction.
\ir ../_setup.psql
select plan(4);

create temporary view held as
select count(*) from pg_locks where pid = pg_backend_pid() and locktype in ('transactionid', 'advisory');

insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{}', null, now(), now() + interval '1 day');
select count as before from held \gset
savepoint repeat;
select outcome as repeat from :begin_key \gset
select outcome as reuse from :begin_other_request \gset
select count as during from held \gset
select is(:'repeat'::text, 'replay', 'a replay');
select is(:'reuse'::text, 'reused', 'a reuse');
select is(:during, :before, 'nothing more was held');
release savepoint repeat;

savepoint first;
select pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint') \gset
select is((select count from held), :before + 2::bigint, 'a claim holds the gate and the id of its subtransaction');

select * from finish();
rollback;
