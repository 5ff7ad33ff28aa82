begin;
\ir ../_setup.psql
\ir ../_foreign_rows.psql
\ir ../_diagnose.psql
select plan(8);

select format('select pgidem.forget_principal(%L)', :'principal') as forget, gen_random_uuid() as running \gset
prepare left_over as
select (select count(*) from pgidem.idempotency_keys where principal_id = :'principal') + (select count(*) from pgidem.idempotency_record where user_id = :'principal');
savepoint another_transaction;
insert into pgidem.idempotency_keys
values (:'principal', gen_random_uuid(), 'pay', :'fingerprint', 'completed', 200, '{}', null, now(), now() + interval '1 hour');
insert into pgidem.idempotency_keys
values (:'principal', :'running', 'pay', :'fingerprint', 'in_progress', null, null, null, now(), now() + interval '1 hour');
release savepoint another_transaction;
select pg_temp.diagnose(:'forget') as e \gset
select is(:'e'::jsonb - 'hint', jsonb_build_object('code', 'ID002', 'message', 'a key of the principal is running',
  'detail', format('Key %s has a claim of this transaction or one without an answer.', :'running')), 'a committed claim');
select alike(:'e'::jsonb ->> 'hint', '%forget_key, p_force => true%', 'the hint says how to free it');
select results_eq('left_over', array[2::bigint], 'both keys stay');
select pgidem.forget_key(:'principal', :'running', p_force => true) \gset

savepoint another_transaction;
select token from pgidem.idem_claim(:'principal', 'order 1', :'fingerprint') \gset
release savepoint another_transaction;
select pg_temp.diagnose(:'forget') as e \gset
select is(:'e'::jsonb ->> 'detail', 'Key order 1 has a claim of this transaction or one without an answer.', 'a lease that is running');
select results_eq('left_over', array[2::bigint], 'and the answer in the other table stays with it');
savepoint another_transaction;
select pgidem.idem_finish(:'principal', 'order 1', :token, 200, null, null, null, null) \gset
release savepoint another_transaction;

select is(pgidem.forget_principal(:'principal'), 2::bigint, 'when nothing runs');
select :begin_key \gset
select throws_ok(:'forget', 'ID002', null, 'a claim of this transaction');
select :complete_key \gset
select throws_ok(:'forget', 'ID002', null, 'also with its answer');

select * from finish();
rollback;
