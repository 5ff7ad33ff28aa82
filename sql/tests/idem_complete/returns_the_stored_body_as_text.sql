begin;
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
select pgidem.idem_complete(:'principal', :'key', 200, '{"long": 1.10, "a": 1e2, "a": 2}') as body \gset
select is(:'body'::text, '{"a": 2, "long": 1.10}', 'as jsonb writes it');
select is((select response_body::text from pgidem.idempotency_keys where :this_key), :'body', 'which is what is stored');

select * from finish();
rollback;
