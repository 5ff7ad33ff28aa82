begin;
-- Case 70 and H5. A transaction with an id of its own holds a lock on it, and so does a subtransaction.
\ir ../_record.psql
select plan(7);

create temporary view held as
select count(*) from pg_locks where pid = pg_backend_pid() and locktype in ('transactionid', 'advisory', 'tuple');

insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, response_status, finished_at, live_until, retention, created_at, expires_at)
select :'user_id', key, :'fingerprint', 1, 1, state, 200, now(), now() + interval '1 day', '1 day', now(), now() + interval '1 day'
from (values (:'key', 'in_progress'), ('finished', 'completed')) v (key, state);
select count as before from held \gset
savepoint repeat;
select outcome as running from :claim_key \gset
select outcome as reuse from :claim_other_request \gset
select outcome as replay from pgidem.idem_claim(:'user_id', 'finished', :'fingerprint') \gset
select outcome as reuse_of_finished from pgidem.idem_claim(:'user_id', 'finished', :'other_fingerprint') \gset
select count as during from held \gset
select is(:'running'::text, 'in_progress', 'in progress');
select is(:'reuse'::text, 'reused', 'a reuse while it runs');
select is(:'replay'::text, 'replay', 'a replay');
select is(:'reuse_of_finished'::text, 'reused', 'a reuse afterwards');
select is(:during, :before, 'nothing more was held');
select is(max(xmax::text), '0', 'no row is locked') from pgidem.idempotency_record where user_id = :'user_id';
release savepoint repeat;

savepoint first;
select pgidem.idem_claim(:'user_id', 'fresh', :'fingerprint') \gset
select is((select count from held), :before + 2::bigint, 'a claim holds the gate and the id of its subtransaction');

select * from finish();
rollback;
