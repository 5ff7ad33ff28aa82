begin;
\ir ../_expired_records.psql
\ir ../_doctor.psql
select plan(15);

delete from pgidem.idempotency_keys;
delete from pgidem.cleanup_run;
prepare findings as select check_name, status from pgidem.doctor() where check_name like 'cleanup\_%';
-- It is 12:03, and five records expire from 12:01 on.
select results_eq('findings', $$values ('cleanup_schedule', 'warn'), ('cleanup_success', 'warn'), ('cleanup_backlog', 'ok')$$, 'nothing cleans, and nothing hurts yet');
select is(pg_temp.detail('cleanup_schedule'), 'nothing runs it, and pg_cron is not in this database', 'it says so');
select is(pg_temp.detail('cleanup_success'), 'no run has come to its end yet', 'and so');
select is(pg_temp.detail('cleanup_backlog'), 'the first expired key has waited 00:02:00', 'and how long');

set local test.now = '2000-03-02 12:16+00';
select is(pg_temp.status('cleanup_backlog'), 'ok', 'a quarter of an hour');
set local test.now = '2000-03-02 12:16:01+00';
select is(pg_temp.status('cleanup_backlog'), 'warn', 'longer');
set local test.now = '2000-03-03 12:01:01+00';
select is(pg_temp.status('cleanup_backlog'), 'fail', 'longer than a day');

select pgidem._cleanup_step(3, null) as run \gset
select results_eq('findings', $$values ('cleanup_schedule', 'ok'), ('cleanup_success', 'warn'), ('cleanup_backlog', 'warn')$$, 'a run has begun');
select pgidem._cleanup_step(10, (select max(id) from pgidem.cleanup_run)) \gset
select results_eq('findings', $$values ('cleanup_schedule', 'ok'), ('cleanup_success', 'ok'), ('cleanup_backlog', 'ok')$$, 'and has come to its end');
select is(pg_temp.detail('cleanup_backlog'), 'no expired key waits', 'with nothing left');
set local test.now = '2000-03-03 12:16:01+00';
select alike(pg_temp.detail('cleanup_schedule'), '%something else runs it: the last time 00:15:00 ago', 'a quarter of an hour later');
set local test.now = '2000-03-03 12:16:02+00';
select results_eq('findings', $$values ('cleanup_schedule', 'warn'), ('cleanup_success', 'warn'), ('cleanup_backlog', 'ok')$$, 'it does not run any more');
select is(pg_temp.detail('cleanup_success'), 'the last whole run ended 00:15:01 ago', 'it says since when');

-- Where the interval is long, so is the patience.
update pgidem.settings set cleanup_interval = '1 hour';
set local test.now = '2000-03-03 17:01:01+00';
select results_eq('findings', $$values ('cleanup_schedule', 'ok'), ('cleanup_success', 'ok'), ('cleanup_backlog', 'ok')$$, 'five intervals');
set local test.now = '2000-03-03 17:01:02+00';
select is(pg_temp.status('cleanup_schedule'), 'warn', 'more');

select * from finish();
rollback;
