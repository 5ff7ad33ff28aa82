begin;
-- C1.
\ir ../_record.psql
\ir ../_foreign_rows.psql
select plan(7);

create temporary table tokens (token bigint primary key, what text);
prepare mark_dead as update pgidem.idempotency_record set live_until = '-infinity', expires_at = '-infinity' where :this_record;

savepoint another_transaction;
insert into tokens select token, 'the first' from :claim_key;
select max(token) as token from tokens \gset
execute release(:token) \gset
insert into tokens select token, 'after a release' from :claim_key;
execute mark_dead;
release savepoint another_transaction;
savepoint another_transaction;
insert into tokens select token, 'after its lease' from :claim_key;
release savepoint another_transaction;
select pgidem.forget_key(:'user_id', :'key', true) \gset
savepoint another_transaction;
insert into tokens select token, 'after forget_key' from :claim_key;
execute mark_dead;
release savepoint another_transaction;
select pgidem.cleanup_batch() \gset
select is_empty('select from pgidem.idempotency_record where ' || :'this_record', 'cleaned');
savepoint another_transaction;
insert into tokens select token, 'after the cleanup' from :claim_key;
execute mark_dead;
release savepoint another_transaction;

-- What ROLLBACK TO undoes is still in the hands of the caller.
savepoint s;
select token as undone from :claim_key \gset
rollback to savepoint s;
select ok(:undone > all (select token from tokens), 'over a dead record');
savepoint another_transaction;
insert into tokens select token, 'after ROLLBACK TO' from :claim_key;
release savepoint another_transaction;
select cmp_ok(max(token), '>', :undone::bigint, 'not the one that was undone') from tokens;
select pgidem.forget_key(:'user_id', :'key', true) \gset
savepoint s;
select token as undone from :claim_key \gset
rollback to savepoint s;
select token as last from :claim_key \gset
select cmp_ok(:last::bigint, '>', :undone::bigint, 'nor where there was no record');

select is(count(*)::integer, 6, 'no token twice') from tokens;
select is(array_agg(what order by token), array['the first', 'after a release', 'after its lease', 'after forget_key', 'after the cleanup',
  'after ROLLBACK TO'], 'each larger than the ones before') from tokens;
execute finish(:undone, 'by the one that was undone') \gset
select is(:'outcome'::text, 'in_progress', 'so a late worker is told from its successor');

select * from finish();
rollback;
