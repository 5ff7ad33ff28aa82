begin;
\ir ../_alone.psql
select plan(22);

create function pg_temp.table_takes(p_user_id text, p_key text) returns boolean language plpgsql as $$
begin
  insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, live_until, retention, created_at, expires_at)
  values (p_user_id, p_key, sha256('x'), 1, 1, now(), '1 day', now(), now());
  delete from pgidem.idempotency_record where user_id = p_user_id and idem_key = p_key;
  return true;
exception
  when check_violation or not_null_violation then
    return false;
end
$$;

create temporary table example (value) as
select unnest(array[
  null, '', ' ', 'a', ' a', 'a ', 'a b', '!', '~', E'a\tb', E'a\u0001', E'a\u007f', E'a\u0085', E'a\u00a0', 'ü',
  repeat('a', 255), repeat('a', 256), repeat('ü', 255), repeat('ü', 256), E'a\n', E'\na', 'a  b'
]);
select is(
  array[pgidem._is_record_key(value, 'key'), pgidem._is_record_key('user', value)],
  array[pg_temp.table_takes(value, 'key'), pg_temp.table_takes('user', value)],
  coalesce(left(value, 10), 'null')
)
from example;

select * from finish();
rollback;
