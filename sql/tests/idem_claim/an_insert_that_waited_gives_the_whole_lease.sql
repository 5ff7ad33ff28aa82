begin;
-- M12: a writer that knows no gate held the key meanwhile.
\ir ../_record.psql
\ir ../_clock_list.psql
select plan(3);

-- Before the insert, and behind it.
set local test.times = '{2026-03-01 12:00:00+00, 2026-03-01 12:00:01.9+00}';
select outcome, token, live_until from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '1 second', '1 minute') \gset
select is(:'outcome'::text, 'claimed', 'claimed');
select is(:'live_until'::timestamptz, '2026-03-01 12:00:02.9+00', 'the whole second lies ahead');
select results_eq(
  'select created_at, live_until, expires_at from pgidem.idempotency_record where ' || :'this_record',
  $$values ('2026-03-01 12:00:01.9+00'::timestamptz, '2026-03-01 12:00:02.9+00'::timestamptz, '2026-03-01 12:01:02.9+00'::timestamptz)$$,
  'in the row too'
);

select * from finish();
rollback;
