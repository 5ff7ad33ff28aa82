begin;
-- L5: known again under the same id, it is a principal without a past.
\ir ../_setup.psql
select plan(3);

select pgidem.register_principal(:'principal') \gset
select :begin_key \gset
select is((select count(*) from pgidem.idempotency_keys where :this_key), 1::bigint, 'a key of the principal');

delete from pgidem.principals where id = :'principal';
select is((select count(*) from pgidem.idempotency_keys where :this_key), 0::bigint, 'is gone with it');

select pgidem.register_principal(:'principal') \gset
select is((:begin_key).outcome, 'claimed', 'so that a retry runs');

select * from finish();
rollback;
