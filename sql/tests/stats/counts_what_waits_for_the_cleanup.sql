begin;
\ir ../_expired_records.psql
select plan(6);

select gen_random_uuid() as principal \gset
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null,
  '2000-03-01 12:00+00', '2000-03-02 12:02:30+00'::timestamptz + n * interval '1 minute'
from generate_series(0, 3) n;
prepare figures as
select metric, table_name, value, is_estimate from pgidem.stats() where metric in ('expired', 'oldest_expired_age');
select results_eq('execute figures', $$
  values ('expired', 'idempotency_keys', 1::numeric, false), ('oldest_expired_age', 'idempotency_keys', 30.000000::numeric, false),
    ('expired', 'idempotency_record', 3, false), ('oldest_expired_age', 'idempotency_record', 120.000000, false)
$$, 'of each table');
select pgidem.cleanup_batch() \gset
select results_eq('execute figures', $$
  values ('expired', 'idempotency_keys', 0::numeric, false), ('oldest_expired_age', 'idempotency_keys', null, false),
    ('expired', 'idempotency_record', 0, false), ('oldest_expired_age', 'idempotency_record', null, false)
$$, 'after the cleanup');

-- Not beyond a bound.
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, null, null, '2000-03-01 12:00+00', '2000-03-02 12:00+00'
from generate_series(1, 99999) n;
select is(format('%s %s', value, is_estimate), '99999 f', 'below it exactly') from pgidem.stats() where metric = 'expired' and table_name = 'idempotency_keys';
insert into pgidem.idempotency_keys
select :'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, null, null, '2000-03-01 12:00+00', '2000-03-02 12:00+00'
from generate_series(1, 2) n;
select is(format('%s %s', value, is_estimate), '100000 t', 'keys') from pgidem.stats() where metric = 'expired' and table_name = 'idempotency_keys';
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, response_status, finished_at, live_until, retention, created_at, expires_at)
select :'user_id', 'more ' || n, :'fingerprint', 1, 1, 'completed', 200, '2000-03-01 12:00+00', '2000-03-02 12:00+00', '1 day',
  '2000-03-01 12:00+00', '2000-03-02 12:00+00'
from generate_series(1, 100001) n;
select pg_stat_get_xact_numscans('pgidem.idempotency_keys'::regclass) + pg_stat_get_xact_numscans('pgidem.idempotency_record'::regclass) as scans \gset
select is(format('%s %s', value, is_estimate), '100000 t', 'records') from pgidem.stats() where metric = 'expired' and table_name = 'idempotency_record';
select is(
  pg_stat_get_xact_numscans('pgidem.idempotency_keys'::regclass) + pg_stat_get_xact_numscans('pgidem.idempotency_record'::regclass),
  :scans::bigint,
  'without a scan of a table'
);

select * from finish();
rollback;
