begin;
\ir ../_alone.psql
select plan(2);

select results_eq('select * from pgidem.show_settings()', 'table pgidem.settings', 'the defaults');
update pgidem.settings set lock_timeout = '5 seconds';
select is(lock_timeout, interval '5 seconds', 'what an operator changed') from pgidem.show_settings();

select * from finish();
rollback;
