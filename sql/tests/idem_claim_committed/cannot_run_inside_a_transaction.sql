begin;
-- Case 73, for a claim: nobody else would see it, and the effect would come before its commit.
\ir ../_record.psql
select plan(4);

select throws_ok(format('call pgidem.idem_claim_committed(%L, %L, %L)', :'user_id', :'key', :'fingerprint'), '2D000', null, 'the error of the server');
select is_empty('select from pgidem.idempotency_record where ' || :'this_record', 'nothing is left of the claim');
select is_empty($$select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory' and objsubid = 1$$, 'nor of its gate');
select is((:claim_key).outcome, 'claimed', 'the key is free');

select * from finish();
rollback;
