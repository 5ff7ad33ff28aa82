begin;
\ir ../_alone.psql
select plan(1);

delete from pgidem.settings;
select ok(pgidem.show_settings() is null, 'no row, no defaults');

select * from finish();
rollback;
