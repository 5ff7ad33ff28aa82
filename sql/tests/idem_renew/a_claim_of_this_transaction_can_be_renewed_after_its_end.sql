begin;
-- A unit of work: nobody else can have taken it over.
\ir ../_record.psql
\ir ../_clock.psql
select plan(3);

set local test.now = '2026-03-01 12:00+00';
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes') \gset
set local test.now = '2026-03-01 13:00+00';
select lives_ok(format('execute assert_lease(%s)', :token), 'asserted');
select results_eq(format('execute renew(%s, %L)', :token, '10 minutes'), array[true], 'renewed');
select is(live_until, '2026-03-01 13:10+00', 'from now on') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
