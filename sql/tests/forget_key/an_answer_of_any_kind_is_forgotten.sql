begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(4);

savepoint another_transaction;
create temporary table answers as
select what, status, body, gen_random_uuid() as key
from (values
  ('a final 4xx', 404, '{"code": "not_found"}'::jsonb),
  ('one without a body', 204, null),
  ('a one-time secret', 201, '{"one_time_secret": true}')
) v (what, status, body);
insert into pgidem.idempotency_keys
select :'principal', key, 'pay', :'fingerprint', 'completed', status, body, null, now(), now() + interval '1 hour' from answers;
release savepoint another_transaction;

select is(pgidem.forget_key(:'principal', key::text), true, what) from answers;
select is_empty(format('select from pgidem.idempotency_keys where principal_id = %L', :'principal'), 'nothing is left of them');

select * from finish();
rollback;
