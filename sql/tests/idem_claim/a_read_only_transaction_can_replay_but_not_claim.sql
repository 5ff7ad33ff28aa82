begin;
-- Case 15: 25006 keeps its SQLSTATE.
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(10);

savepoint another_transaction;
select token from :claim_key \gset
execute finish(:token, 'done') \gset
select token as running from pgidem.idem_claim(:'user_id', 'running', :'fingerprint') \gset
select pgidem.idem_claim(:'user_id', 'dead', :'fingerprint') \gset
update pgidem.idempotency_record set live_until = now() - interval '1 hour' where user_id = :'user_id' and idem_key = 'dead';
release savepoint another_transaction;
set transaction read only;

select is((:claim_key).outcome, 'replay', 'a stored response answers');
select is((:claim_other_request).outcome, 'reused', 'also another request');
select is((pgidem.idem_claim(:'user_id', 'running', :'fingerprint')).outcome, 'in_progress', 'a running one as well');
select throws_ok(format('select pgidem.idem_claim(%L, %L, %L)', :'user_id', key, :'fingerprint'), '25006', null, 'a ' || key || ' key is 25006')
from unnest(array['fresh', 'dead']) key;
select throws_ok(format(statement, :'user_id', 'running', :running), '25006', null, statement)
from unnest(array[
  'select pgidem.idem_finish(%L, %L, %L, 200, null, null, null, null)',
  'select pgidem.idem_release(%L, %L, %L)',
  'select pgidem.idem_renew(%L, %L, %L)',
  'select pgidem.idem_assert_lease(%L, %L, %L)'
]) statement;
select is((pgidem.idem_claim(:'user_id', 'running', :'fingerprint')).outcome, 'in_progress', 'the transaction goes on');

select * from finish();
rollback;
