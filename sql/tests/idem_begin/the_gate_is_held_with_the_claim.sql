begin;
-- Both belong to the (sub)transaction of the claim: neither outlives the other.
\ir ../_setup.psql
select plan(6);

create temporary view gate as
select mode, granted
from pg_locks
where pid = pg_backend_pid()
  and locktype = 'advisory'
  and objsubid = 1
  and (classid::bigint << 32 | objid::bigint) = pgidem._gate(:'principal', :'key');

select is_empty('table gate', 'free before');
savepoint undone;
select is((:begin_key).outcome, 'claimed', 'claimed');
select results_eq('table gate', $$values ('ExclusiveLock', true)$$, 'held with the claim');
rollback to savepoint undone;
select is_empty('table gate', 'given back with it');
select is((:begin_key).outcome, 'claimed', 'the key is free again');
select :complete_key \gset
select results_eq('table gate', $$values ('ExclusiveLock', true)$$, 'and held until the transaction ends');

select * from finish();
rollback;
