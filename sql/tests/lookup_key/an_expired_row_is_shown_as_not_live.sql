begin;
\ir ../_setup.psql
\ir ../_clock.psql
select plan(3);

insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 201, '{"amount": 1}', null,
  '2000-03-01 12:00+00', '2000-03-02 12:00+00');
set local test.now = '2000-03-02 11:59:59.999999+00';
select is(live, true, 'until its last microsecond') from pgidem.lookup_key(:'principal', :'key');
set local test.now = '2000-03-02 12:00+00';
select is(live, false, 'expired at the very instant') from pgidem.lookup_key(:'principal', :'key');
set local test.now = '2000-03-03 12:00+00';
select results_eq(
  format('select state, live, response_status, age, response_body from pgidem.lookup_key(%L, %L, true)', :'principal', :'key'),
  $$values ('completed', false, 201, interval '48 hours', '{"amount": 1}')$$,
  'with all that it holds'
);

select * from finish();
rollback;
