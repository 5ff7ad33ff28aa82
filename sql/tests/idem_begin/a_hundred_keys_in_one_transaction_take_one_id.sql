begin;
-- Case 70: beyond 64 subtransactions every snapshot of the server gets slower.
\ir ../_setup.psql
select plan(3);

create temporary table keys as select gen_random_uuid() as key from generate_series(1, 100);
select is(count(*) filter (where (pgidem.idem_begin(:'principal', key, 'pay', :'fingerprint')).outcome = 'claimed'), 100::bigint, '100 claims')
from keys;
select is(count(pgidem.idem_complete(:'principal', key, 200, '{}')), 100::bigint, '100 completions') from keys;
select results_eq(
  format('select distinct xmin from pgidem.idempotency_keys where principal_id = %L', :'principal'),
  'select xid(pg_current_xact_id())',
  'one transaction id'
);

select * from finish();
rollback;
