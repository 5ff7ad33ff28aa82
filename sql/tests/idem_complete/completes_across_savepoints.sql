begin;
-- C2: the row may carry the id of a subtransaction.
\ir ../_setup.psql
select plan(6);

select :begin_key \gset
savepoint s;
select is(:complete_key, '{"amount": 1}', 'begun outside, completed in a savepoint');
rollback to savepoint s;
select is(:complete_key, '{"amount": 1}', 'and again after that was undone');

select gen_random_uuid() as key \gset
savepoint a;
savepoint b;
select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint') \gset
release savepoint b;
select is(pgidem.idem_complete(:'principal', :'key', 200, '{}'), '{}', 'begun in a savepoint released since');

select gen_random_uuid() as key \gset
savepoint c;
select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint') \gset
select is(pgidem.idem_complete(:'principal', :'key', 200, '{}'), '{}', 'begun in the same savepoint');
release savepoint c;

select gen_random_uuid() as key \gset
select lives_ok(
  format('do $$ begin perform pgidem.idem_begin(%1$L, %2$L, %3$L, %4$L); exception when division_by_zero then null; end $$',
    :'principal', :'key', 'pay', :'fingerprint'),
  'begun in an exception block that ended well'
);
select is(pgidem.idem_complete(:'principal', :'key', 200, '{}'), '{}', 'completed outside');

select * from finish();
rollback;
