begin;
\ir ../_alone.psql
select plan(3);

insert into pgidem.cleanup_run (started_at) select now() from generate_series(1, 10010);
select max(id) as last from pgidem.cleanup_run \gset
select p_run as run from pgidem._cleanup_step(1, null) \gset
select is(count(*), 10000::bigint, 'as many as that') from pgidem.cleanup_run;
select is(max(id), :run::bigint, 'with its own') from pgidem.cleanup_run;
select is(:run, :last + 1, 'numbered one after another');

select * from finish();
rollback;
