begin;
-- C2: the xmin of a frozen row stays in the row. Long after, it reads as one of the server's own ids, or as one of the future.
select plan(5);

select pg_current_xact_id()::text::bigint as top \gset
select ok(not pgidem._mine(id::xid), 'id ' || id) from unnest(array['1', '2', '3']) id;
select ok(not pgidem._mine(((:top + distance) & 4294967295)::text::xid), distance || ' ahead')
from unnest(array[20000000, 2147483647]::bigint[]) distance;

select * from finish();
rollback;
