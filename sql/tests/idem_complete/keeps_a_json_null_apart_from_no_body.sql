begin;
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
select is(pgidem.idem_complete(:'principal', :'key', 200, 'null'), 'null', 'the text null');
select is((select response_body from pgidem.idempotency_keys where :this_key), 'null'::jsonb, 'is stored as such');

select * from finish();
rollback;
