begin;
\ir ../_alone.psql
\ir ../_diagnose.psql
select plan(2);

delete from pgidem.settings;
select pg_temp.diagnose('select pgidem.schedule_cleanup()') as e \gset
select is(:'e'::jsonb ->> 'code', '22023', 'refused');
select alike(:'e'::jsonb ->> 'hint', '%insert into pgidem.settings default values%', 'with the statement that helps');

select * from finish();
rollback;
