begin;
-- Case 70.
\ir ../_setup.psql
select plan(3);

create temporary view held as
select count(*) from pg_locks where pid = pg_backend_pid() and locktype in ('transactionid', 'advisory');

insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 404, '{}', null, now(), now() + interval '1 day');
select count as before from held \gset
savepoint repeat;
select outcome as repeat from :save_final_key \gset
select outcome as reuse
from pgidem.idem_save_final(:'principal', :'key', 'pay', :'other_fingerprint', 404, '{}') \gset
select count as during from held \gset
select is(:'repeat'::text, 'replay', 'a replay');
select is(:'reuse'::text, 'reused', 'a reuse');
select is(:during, :before, 'nothing more was held');

select * from finish();
rollback;
