begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(2);

select is((pgidem._read_record(:'user_id', :'key', :'fingerprint', null)).outcome, 'absent', 'no row');
savepoint another_transaction;
select token from :claim_key \gset
execute finish(:token, 'done') \gset
update pgidem.idempotency_record set live_until = now() - interval '1 day' where :this_record;
release savepoint another_transaction;
select results_eq(
  format('select outcome, token, response_status, response_body from pgidem._read_record(%L, %L, %L, null)', :'user_id', :'key', :'fingerprint'),
  format($$values ('dead', %s::bigint, null::integer, null::bytea)$$, :token),
  'a dead one with its token, whose response is not given away'
);

select * from finish();
rollback;
