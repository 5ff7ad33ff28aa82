begin;
\ir ../_alone.psql
select plan(1);

create temporary table before as table pgidem.settings;
delete from pgidem.settings;
insert into pgidem.settings default values;
select results_eq('table pgidem.settings', 'table before', 'as the hint of a missing row says');

select * from finish();
rollback;
