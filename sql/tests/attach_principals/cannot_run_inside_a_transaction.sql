begin;
select plan(2);

create table public.pgidem_test_users (id uuid primary key);
select throws_ok($$call pgidem.attach_principals('public.pgidem_test_users')$$, '2D000', null, 'it commits between its steps');
select is(
  pg_get_constraintdef(oid),
  'FOREIGN KEY (principal_id) REFERENCES pgidem.principals(id) ON DELETE CASCADE DEFERRABLE INITIALLY DEFERRED',
  'nothing has changed'
)
from pg_constraint
where conrelid = 'pgidem.idempotency_keys'::regclass and contype = 'f';

select * from finish();
rollback;
