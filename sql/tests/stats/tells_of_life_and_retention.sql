begin;
\ir ../_alone.psql
-- Of few pages, whatever other files do.
truncate pgidem.idempotency_keys, pgidem.idempotency_record;
\ir ../_expired_keys.psql
select plan(6);

create function pg_temp.figure(text, text) returns text language sql as $$
  select concat_ws(' ', s.value::float8, case when s.is_estimate then 'or so' end) from pgidem.stats() s where s.metric = $1 and s.table_name = $2
$$;
update pgidem.settings set key_ttl = interval '2 hours', retention = interval '90 minutes';
select is(pg_temp.figure('live', 'idempotency_keys'), '2', 'those that have not expired');
select is(pg_temp.figure('oldest_age', 'idempotency_keys'), (24 * 3600 + 180)::text, 'of the first that expires');
select is(pg_temp.figure('retention', 'idempotency_keys'), '7200', 'settings.key_ttl');
select is(pg_temp.figure('retention', 'idempotency_record'), '5400', 'settings.retention');

select is(pg_temp.figure('oldest_age', 'idempotency_record'), '', 'of none');
-- A lease that runs, one that ended, a response that answers and one that does not, though the cleanup may not take it yet.
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, live_until, retention, response_status,
  created_at, finished_at, expires_at)
select 'alice', n::text, sha256(''), 1, 1, state, '2000-03-02 12:03+00'::timestamptz + live, '1 day', status, '2000-03-02 11:00+00', finished,
  '2000-03-03 12:00+00'
from (
  values (1, 'in_progress', interval '1 second', null, null), (2, 'in_progress', interval '0', null, null),
    (3, 'completed', interval '1 second', 204, timestamptz '2000-03-02 12:00+00'), (4, 'completed', interval '-1 second', 204, timestamptz '2000-03-02 12:00+00')
) r (n, state, live, status, finished);
select is(pg_temp.figure('live', 'idempotency_record'), '2', 'a lease that runs and a response that answers');

select * from finish();
rollback;
