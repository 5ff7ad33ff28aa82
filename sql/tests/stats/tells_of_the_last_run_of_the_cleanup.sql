begin;
\ir ../_expired_keys.psql
select plan(6);

create temporary view figures as
select string_agg(concat_ws(' ', metric, value), ', ') as what from pgidem.stats() where metric like 'cleanup\_%' and metric <> 'cleanup_jobs';
delete from pgidem.cleanup_run;
select is(what, 'cleanup_age, cleanup_success_age, cleanup_duration, cleanup_batches, cleanup_deleted', 'of none before the first') from figures;
select p_run as run from pgidem._cleanup_step(2, null) \gset
set local test.now = '2000-03-02 12:03:10+00';
select is(what, 'cleanup_age 10.000000, cleanup_success_age, cleanup_duration, cleanup_batches 1, cleanup_deleted 2', 'while it runs') from figures;
select pgidem._cleanup_step(2, :run) \gset
set local test.now = '2000-03-02 12:04:10+00';
select is(what, 'cleanup_age 70.000000, cleanup_success_age 60.000000, cleanup_duration 10.000000, cleanup_batches 2, cleanup_deleted 3', 'when it has ended') from figures;
select pgidem._cleanup_step(2, null) \gset
select is(what, 'cleanup_age 0.000000, cleanup_success_age 0.000000, cleanup_duration 0.000000, cleanup_batches 1, cleanup_deleted 1', 'of the last one only') from figures;
set local test.now = '2000-03-02 12:05:10+00';
insert into pgidem.cleanup_run (started_at) values ('2000-03-02 12:05+00');
select is(what, 'cleanup_age 10.000000, cleanup_success_age 60.000000, cleanup_duration, cleanup_batches 0, cleanup_deleted 0',
  'a run that did not come to its end is no success') from figures;
select is(count(*), 0::bigint, 'nothing of these is an estimate') from pgidem.stats() where metric like 'cleanup\_%' and is_estimate;

select * from finish();
rollback;
