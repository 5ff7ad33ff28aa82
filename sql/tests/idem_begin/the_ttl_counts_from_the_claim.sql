begin;
\ir ../_setup.psql
\ir ../_clock.psql
select plan(2);

set local test.now = '2026-03-01 12:00+00';
select results_eq(
  format(
    'select created_at, expires_at from pgidem.idem_begin(%L, %L, %L, %L, p_ttl => %L)',
    :'principal', :'key', 'pay', :'fingerprint', '90 minutes'),
  $$values ('2026-03-01 12:00+00'::timestamptz, '2026-03-01 13:30+00'::timestamptz)$$,
  'the TTL given'
);
select results_eq(
  format('select created_at, expires_at from pgidem.idem_begin(%L, %L, %L, %L)',
    :'principal', gen_random_uuid(), 'pay', :'fingerprint'),
  $$values ('2026-03-01 12:00+00'::timestamptz, '2026-03-02 12:00+00'::timestamptz)$$,
  'else 24 hours'
);

select * from finish();
rollback;
