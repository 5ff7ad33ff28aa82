begin;
\ir ../_record.psql
\ir ../_clock.psql
select plan(5);

set local test.now = '2000-03-01 12:00+00';
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
create temporary table before as select * from pgidem.idempotency_record where :this_record;

set local test.now = '2000-03-01 12:10+00';
select is(outcome, 'lost', 'another token: somebody else was faster')
from pgidem._take_over(:'user_id', :'key', :token - 1, :'other_fingerprint', null, '5 minutes', '2 days', clock_timestamp() + interval '1 second');
set local test.now = '2000-03-01 12:09:59.999999+00';
select is(outcome, 'lost', 'alive: it was renewed')
from pgidem._take_over(:'user_id', :'key', :token, :'other_fingerprint', null, '5 minutes', '2 days', clock_timestamp() + interval '1 second');
select is(outcome, 'lost', 'gone')
from pgidem._take_over(:'user_id', 'another key', :token, :'other_fingerprint', null, '5 minutes', '2 days', clock_timestamp() + interval '1 second');
select results_eq('select * from pgidem.idempotency_record where ' || :'this_record', 'table before', 'nothing has changed');
set local test.now = '2000-03-01 12:10+00';
select is(outcome, 'claimed', 'claimed')
from pgidem._take_over(:'user_id', :'key', :token, :'other_fingerprint', null, '5 minutes', '2 days', clock_timestamp() + interval '1 second');

select * from finish();
rollback;
