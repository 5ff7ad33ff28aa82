begin;
-- M4: a loser could finish with it.
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(6);

select is(token is not null, true, 'claimed') from :claim_key;
select is(token, null, 'in_progress') from :claim_key;
select is(token, null, 'reused') from :claim_other_request;
select is(token, null, 'another attempt')
from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_attempt => gen_random_uuid());
select token from pgidem.idempotency_record where :this_record \gset
select is(token, null, 'stored')
from pgidem.idem_finish(:'user_id', :'key', :token, 201, null, null, null, null);
select is(token, null, 'replay') from :claim_key;

select * from finish();
rollback;
