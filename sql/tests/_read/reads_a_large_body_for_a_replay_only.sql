begin;
-- A client could make the server print a large body again and again by another request with the key.
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(3);

-- Random text, so that it fills as many pages as it has bytes.
savepoint another_transaction;
insert into pgidem.idempotency_keys
select :'principal', :'key', 'pay', :'fingerprint', 'completed', 200, to_jsonb(string_agg(gen_random_uuid()::text, '')), null, now(), now() + interval '1 day'
from generate_series(1, 10000);
release savepoint another_transaction;

create function pg_temp.pages(p_call text) returns bigint language plpgsql as $$
declare
  v_plan json;
begin
  execute 'explain (analyze, buffers, format json) select ' || p_call into v_plan; -- what is read for the first time
  execute 'explain (analyze, buffers, format json) select ' || p_call into v_plan;
  return (v_plan -> 0 -> 'Plan' ->> 'Shared Hit Blocks')::bigint + (v_plan -> 0 -> 'Plan' ->> 'Shared Read Blocks')::bigint;
end
$$;
select cmp_ok(pg_temp.pages(:'begin_key'), '>', 40::bigint, 'a replay reads it');
select cmp_ok(pg_temp.pages(:'begin_other_request'), '<', 20::bigint, 'another request does not');
update pgidem.idempotency_keys set expires_at = now() where :this_key;
select cmp_ok(pg_temp.pages(format('pgidem._read(%L, %L, %L)', :'principal', :'key', :'fingerprint')), '<', 20::bigint, 'nor does an expired row');

select * from finish();
rollback;
