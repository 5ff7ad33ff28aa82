begin;
-- C1 and case 56: the key was released, or taken over, and used for something else.
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(5);

prepare late(text, bigint) as
select outcome, retry_after, response_status, content_type, location, etag, response_body, one_time_secret from pgidem.idem_finish(:'user_id', $1, $2, 500, null, null, null, 'by A');
create temporary view nothing_told as
select * from (values ('in_progress', 1, null::integer, null::text, null::text, null::text, null::bytea, false)) v;

savepoint another_transaction;
select token as a from :claim_key \gset
execute release(:a) \gset
release savepoint another_transaction;
select results_eq(format('execute late(%L, %s)', :'key', :a), 'table nothing_told', 'released');
savepoint another_transaction;
select token as b from :claim_other_request \gset
execute finish(:b, 'by B') \gset
release savepoint another_transaction;
select results_eq(format('execute late(%L, %s)', :'key', :a), 'table nothing_told', 'claimed anew and finished by another request');

savepoint another_transaction;
select token as a from pgidem.idem_claim(:'user_id', 'taken over', :'fingerprint') \gset
update pgidem.idempotency_record set live_until = now() - interval '1 hour' where user_id = :'user_id' and idem_key = 'taken over';
release savepoint another_transaction;
select token as b, outcome from pgidem.idem_claim(:'user_id', 'taken over', :'other_fingerprint') \gset
select pgidem.idem_finish(:'user_id', 'taken over', :b, 201, null, null, null, 'by B') \gset
select is(:'outcome'::text, 'claimed', 'taken over by another request');
select results_eq(format('execute late(%L, %s)', 'taken over', :a), 'table nothing_told', 'and finished');

select results_eq(format('execute late(%L, %s)', 'unknown', :a), 'table nothing_told', 'a key of which nothing is known');

select * from finish();
rollback;
