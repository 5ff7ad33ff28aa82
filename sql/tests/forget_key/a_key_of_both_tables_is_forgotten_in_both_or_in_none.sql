begin;
\ir ../_stored_key.psql
select plan(7);

savepoint another_transaction;
select token from pgidem.idem_claim(:'principal', :'key', :'fingerprint') \gset
release savepoint another_transaction;

select throws_ok(format('select pgidem.forget_key(%L, %L)', :'principal', :'key'), 'ID002', null, 'a lease is running');
select is((:begin_key).outcome, 'replay', 'so the stored answer stays too');
savepoint s;
select is(pgidem.forget_key(:'principal', :'key', true), true, 'by force both go');
select is((:begin_key).outcome || ' ' || (pgidem.idem_claim(:'principal', :'key', :'fingerprint')).outcome, 'claimed claimed', 'nothing is left of them');
rollback to savepoint s;
select is(pgidem.idem_release(:'principal', :'key', :token), true, 'the lease is released');
select is(pgidem.forget_key(:'principal', :'key'), true, 'the answer alone');
select is(pgidem.forget_key(:'principal', :'key'), false, 'nothing is left');

select * from finish();
rollback;
