begin;
-- The functions write no such row; an application with rights on the table may.
\ir ../_setup.psql
\ir ../_clock.psql
\ir ../_foreign_rows.psql
select plan(3);

select gen_random_uuid() as ended \gset
savepoint another_transaction;
insert into pgidem.idempotency_keys values
  (:'principal', :'key', 'pay', :'fingerprint', 'completed', 200, '{}', null, '-infinity', 'infinity'),
  (:'principal', :'ended', 'pay', :'fingerprint', 'completed', 200, '{}', null, '-infinity', '-infinity');
release savepoint another_transaction;

set local test.now = '290000-01-01 00:00+00';
select is((:begin_key).outcome, 'replay', 'infinity');
select is((pgidem.idem_begin(:'principal', :'ended', 'pay', :'fingerprint')).outcome, 'claimed', '-infinity has expired');
select is((select expires_at from pgidem.idempotency_keys where :this_key), 'infinity', 'the row stays');

select * from finish();
rollback;
