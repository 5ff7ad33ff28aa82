begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(2);

savepoint another_transaction;
insert into pgidem.idempotency_keys
select principal, key, 'pay', :'fingerprint', 'completed', 200, '{}', null, now(), now() + interval '1 hour'
from unnest(array[:'principal'::uuid, gen_random_uuid()]) principal
cross join unnest(array[:'key'::uuid, gen_random_uuid()]) key;
release savepoint another_transaction;

select is(pgidem.forget_key(:'principal', :'key'), true, 'one of four');
select is(count(*)::integer, 3, 'the key of another principal and the other keys stay')
from pgidem.idempotency_keys
where created_at = now();

select * from finish();
rollback;
