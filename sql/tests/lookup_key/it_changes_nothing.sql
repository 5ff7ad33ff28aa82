begin read only;
-- Before plan, whose temporary tables take a transaction id and want to write.
\ir ../_setup.psql
select count(*) as rows from pgidem.lookup_key(:'principal', :'key', true) \gset
select
  pg_current_xact_id_if_assigned() is null as no_id,
  not exists (select from pg_locks where pid = pg_backend_pid() and locktype = 'advisory') as no_lock,
  not exists (
    select from pg_locks
    where pid = pg_backend_pid()
      and relation = 'pgidem.idempotency_keys'::regclass
      and mode <> 'AccessShareLock'
  ) as reads_only
\gset
rollback;
begin;
select plan(4);

select is(:rows, 0, 'it runs in a read-only transaction');
select ok(:'no_id', 'takes no transaction id');
select ok(:'no_lock', 'stands in no gate');
select ok(:'reads_only', 'and locks no row');

select * from finish();
rollback;
