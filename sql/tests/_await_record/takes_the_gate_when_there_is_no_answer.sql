begin;
\ir ../_record.psql
select plan(2);

select is((pgidem._await_record(:'user_id', :'key', :'fingerprint', null, clock_timestamp() + interval '1 second')).outcome, 'absent',
  'nothing is recorded');
select results_eq(
  $$select mode from pg_locks where pid = pg_backend_pid() and locktype = 'advisory'$$,
  array['ExclusiveLock'],
  'the gate is held, and not in shared mode'
);

select * from finish();
rollback;
