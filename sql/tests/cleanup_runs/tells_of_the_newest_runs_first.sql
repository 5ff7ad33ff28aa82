begin;
\ir ../_alone.psql
select plan(3);

delete from pgidem.cleanup_run;
insert into pgidem.cleanup_run (started_at, deleted)
select '2000-03-01 12:00+00'::timestamptz + n * interval '1 minute', n from generate_series(1, 30) n;
select results_eq('select deleted from pgidem.cleanup_runs(3)', array[30::bigint, 29, 28], 'three of them');
select is(count(*), 20::bigint, 'by default 20') from pgidem.cleanup_runs();
select is(count(*), 30::bigint, 'all that there are') from pgidem.cleanup_runs(100);

select * from finish();
rollback;
