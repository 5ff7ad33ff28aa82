begin;
\ir ../_record.psql
\ir ../_foreign_rows.psql
\ir ../_clock.psql
select plan(4);

set local test.now = '2000-03-01 12:00+00';
savepoint another_transaction;
select token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '10 minutes', '1 day') \gset
release savepoint another_transaction;
-- The gate of the other transaction is that of this session.
create function pg_temp.look(text, text) returns setof pgidem.lookup_result language sql as
  'select (jsonb_populate_record(l, ''{"running_pid": null}'')).* from pgidem.lookup_key($1, $2, true) l';

set local test.now = '2000-03-01 12:01+00';
select results_eq(
  format('select * from pg_temp.look(%L, %L)', :'user_id', :'key'),
  $$values ('idempotency_record', 'in_progress', true, null, null::integer, null::uuid, false, '2000-03-01 12:00+00'::timestamptz,
    interval '1 minute', '2000-03-01 12:10+00'::timestamptz, null::integer, null)$$,
  'a running lease, with its end'
);
savepoint another_transaction;
select pgidem.idem_finish(:'user_id', :'key', :token, 201, 'text/plain', null, null, '\x646f6e650aff005c') \gset
release savepoint another_transaction;
select results_eq(
  format('select * from pg_temp.look(%L, %L)', :'user_id', :'key'),
  $$values ('idempotency_record', 'completed', true, null, 201, null::uuid, false, '2000-03-01 12:00+00'::timestamptz,
    interval '1 minute', '2000-03-02 12:01+00'::timestamptz, null::integer, E'done\n\\377\\000\\\\')$$,
  'a stored response, with the end of its life'
);
select is(response_body, null, 'the body on request only') from pgidem.lookup_key(:'user_id', :'key');
select is_empty(format('select from pgidem.lookup_key(%L, %L)', :'user_id', 'another key'), 'another key is unknown');

select * from finish();
rollback;
