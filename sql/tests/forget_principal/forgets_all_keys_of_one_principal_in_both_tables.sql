begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
select plan(5);

select gen_random_uuid() as other \gset
savepoint another_transaction;
-- Two answers and a claim that has expired, of each principal; in both tables.
insert into pgidem.idempotency_keys
select principal::uuid, gen_random_uuid(), 'pay', :'fingerprint', state, null, null, null, now() - interval '1 hour', now() + left_over
from unnest(array[:'principal', :'other']) principal
cross join (values ('completed', interval '1 hour'), ('completed', interval '-1 minute'), ('in_progress', interval '-1 minute')) k (state, left_over);
insert into pgidem.idempotency_record (user_id, idem_key, request_sha256, token, first_token, state, response_status, finished_at, live_until, retention, created_at, expires_at)
select user_id, gen_random_uuid()::text, :'fingerprint', 1, 1, state, 200, now(), now() + left_over, '1 hour', now() - interval '1 hour', now() + interval '1 hour'
from unnest(array[:'principal', :'other']) user_id
cross join (values ('completed', interval '1 hour'), ('in_progress', interval '-1 minute')) r (state, left_over);
release savepoint another_transaction;

select is(pgidem.forget_principal(upper(:'principal')), 3::bigint, 'a UUID in any case; a text is what it is');
select is(pgidem.forget_principal(:'principal'), 2::bigint, 'those of the other table');
select is(pgidem.forget_principal(:'principal'), 0::bigint, 'nothing is left');
select is(
  (select count(*) from pgidem.idempotency_keys where principal_id = :'other') + (select count(*) from pgidem.idempotency_record where user_id = :'other'),
  5::bigint, 'the keys of another principal stay');
select is(pgidem.forget_principal('nobody'), 0::bigint, 'a text that is no uuid has no key there');

select * from finish();
rollback;
