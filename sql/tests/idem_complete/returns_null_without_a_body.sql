begin;
-- Case 30.
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
select is(pgidem.idem_complete(:'principal', :'key', 204, null), null, 'no text');
select results_eq(
  'select state, response_status, response_body from pgidem.idempotency_keys where ' || :'this_key',
  $$values ('completed', 204::smallint, null::jsonb)$$,
  'no body, but completed'
);

select * from finish();
rollback;
