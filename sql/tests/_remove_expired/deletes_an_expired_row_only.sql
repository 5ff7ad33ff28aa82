begin;
\ir ../_setup.psql
\ir ../_clock.psql
select plan(3);

insert into pgidem.idempotency_keys
values (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{}', null, '2026-03-01 12:00+00', '2026-03-02 12:00+00');

set local test.now = '2026-03-02 11:59:59.999999+00';
select pgidem._remove_expired(:'principal', :'key', clock_timestamp() + interval '1 second') \gset
select isnt_empty('select from pgidem.idempotency_keys where ' || :'this_key', 'a live row stays');
set local test.now = '2026-03-02 12:00+00';
select ok(pgidem._remove_expired(:'principal', :'key', clock_timestamp() + interval '1 second'), 'not hindered');
select is_empty('select from pgidem.idempotency_keys where ' || :'this_key', 'an expired one goes');

select * from finish();
rollback;
