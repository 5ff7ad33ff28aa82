begin;
\ir ../_record.psql
select plan(3);

select throws_ok(format('call pgidem.idem_claim_committed(%L, %L, %L)', '', :'key', :'fingerprint'), '22023', 'invalid argument', 'no user');
select throws_ok(format('call pgidem.idem_claim_committed(%L, %L, null)', :'user_id', :'key'), '22023', 'invalid argument', 'no fingerprint');
select throws_ok(format('call pgidem.idem_claim_committed(%L, %L, %L, p_lease => ''0'')', :'user_id', :'key', :'fingerprint'), '22023', 'invalid duration', 'no lease');

select * from finish();
rollback;
