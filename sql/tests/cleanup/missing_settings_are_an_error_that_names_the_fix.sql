begin;
\ir ../_expired_keys.psql
\ir ../_diagnose.psql
select plan(3);

delete from pgidem.settings;
select pg_temp.diagnose('call pgidem.cleanup()') as e \gset
select is(:'e'::jsonb ->> 'code', '22023', 'refused');
select alike(:'e'::jsonb ->> 'hint', '%insert into pgidem.settings default values%', 'with the statement that helps');
select is(pg_temp.diagnose('call pgidem.cleanup(10)') ->> 'code', '2D000', 'not needed with a size: it comes to its commit');

select * from finish();
rollback;
