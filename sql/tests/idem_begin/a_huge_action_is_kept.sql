begin;
-- Case 15: what is long stands in no index, so it cannot be too long for one.
\ir ../_setup.psql
select plan(2);

select is((pgidem.idem_begin(:'principal', :'key', repeat('x', 10000000), :'fingerprint')).outcome, 'claimed', '10 million characters');
select is((select length(action) from pgidem.idempotency_keys where :this_key), 10000000, 'all of them');

select * from finish();
rollback;
