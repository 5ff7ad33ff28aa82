begin;
-- Case 68: temporary tables, and functions and operators in front of pg_catalog.
\ir ../_setup.psql
\ir ../_planted.psql
\ir ../_diagnose.psql
select plan(4);

select gen_random_uuid() as other_key \gset
insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, expires_at)
values (:'principal', :'other_key', 'pay', :'fingerprint', '2000-01-01 00:00+00');
select format('select pgidem.forget_key(%L, %L)', :'principal', :'key') as forget \gset
create or replace function pgidem._mine(p_xmin xid) returns boolean language sql stable return false;

set local search_path = planted, pg_temp, pg_catalog;
select pgidem.forget_key(:'principal', :'key') as planted_row, pgidem.forget_key(:'principal', :'other_key') as true_row \gset
select :begin_key \gset
set local search_path = planted, pg_catalog;
select pg_temp.diagnose(:'forget') as e \gset
set local search_path = public;

select is(:'planted_row'::boolean, false, 'the planted row is not seen');
select is(:'true_row'::boolean, true, 'the true one is deleted');
select is(:'e'::jsonb ->> 'code', 'ID002', 'a key that runs is refused');
select is(count(*)::integer, 1, 'the planted row is untouched') from pg_temp.idempotency_keys;

select * from finish();
rollback;
