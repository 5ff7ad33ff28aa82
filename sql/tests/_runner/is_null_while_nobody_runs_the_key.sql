begin;
\ir ../_setup.psql
select plan(3);

select is(pgidem._runner(pgidem._gate(:'principal', :'key')), null, 'a key that nobody used');
select pg_advisory_xact_lock_shared(pgidem._gate(:'principal', :'key')) \gset
select is(pgidem._runner(pgidem._gate(:'principal', :'key')), null, 'a lock in shared mode is that of a waiter');
select is(pgidem._runner(null), null, 'no gate');

select * from finish();
rollback;
