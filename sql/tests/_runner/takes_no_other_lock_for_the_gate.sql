begin;
\ir ../_setup.psql
select plan(4);

-- Two integers are another space of numbers than one bigint.
select pgidem._gate(:'principal', :'key') as gate \gset
select pg_advisory_xact_lock((:gate::bigint >> 32)::integer, (:gate::bigint << 32 >> 32)::integer) \gset
select is(pgidem._runner(pgidem._gate(:'principal', :'key')), null, 'a lock on the halves of the number');
select pg_advisory_xact_lock(:gate::bigint + 1), pg_advisory_xact_lock(:gate::bigint # (1::bigint << 32)) \gset
select is(pgidem._runner(pgidem._gate(:'principal', :'key')), null, 'locks on other numbers');

select :begin_key \gset
select is(pgidem._runner(pgidem._gate(gen_random_uuid(), :'key')), null, 'the key of another principal');
select is(pgidem._runner(pgidem._gate(:'principal', gen_random_uuid())), null, 'another key of the principal');

select * from finish();
rollback;
