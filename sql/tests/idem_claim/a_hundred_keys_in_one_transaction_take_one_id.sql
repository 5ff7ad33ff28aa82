begin;
-- Case 70: beyond 64 subtransactions every snapshot of the server gets slower.
\ir ../_record.psql
select plan(3);

create temporary table claims as
select n::text as key, (pgidem.idem_claim(:'user_id', n::text, :'fingerprint')).token from generate_series(1, 100) n;
select is(count(token)::integer, 100, '100 claims') from claims;
select is(count(*) filter (where (pgidem.idem_finish(:'user_id', key, token, 200, null, null, null, null, p_require => true)).outcome = 'stored')::integer,
  100, '100 responses') from claims;
select results_eq(
  format('select distinct xmin from pgidem.idempotency_record where user_id = %L', :'user_id'),
  'select xid(pg_current_xact_id())',
  'one transaction id'
);

select * from finish();
rollback;
