begin;
-- L4: (f()).* calls the function once for each attribute. The later calls find the claim, so what comes back is a mixture:
-- call it in FROM.
\ir ../_setup.psql
select plan(4);

select (:begin_key).* \gset
select is(:'outcome'::text, 'claimed', 'the first call');
select is(:'retry_after', 1, 'a later one');
select is((select count(*) from pgidem.idempotency_keys where :this_key), 1::bigint, 'one claim');
select is(:complete_key, '{"amount": 1}', 'which can be completed');

select * from finish();
rollback;
