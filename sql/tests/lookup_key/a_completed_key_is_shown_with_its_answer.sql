begin;
\ir ../_setup.psql
\ir ../_clock.psql
select plan(1);

insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 201, '{"amount": 1}', :'principal',
  '2000-03-01 12:00+00', '2000-03-02 12:00+00');
set local test.now = '2000-03-01 13:00+00';
select results_eq(
  format('select * from pgidem.lookup_key(%L, %L)', :'principal', :'key'),
  format(
    $$values ('idempotency_keys', 'completed', true, 'pay', 201, %L::uuid, false, '2000-03-01 12:00+00'::timestamptz,
      interval '1 hour', '2000-03-02 12:00+00'::timestamptz, null::integer, null)$$, :'principal'),
  'everything but the body'
);

select * from finish();
rollback;
