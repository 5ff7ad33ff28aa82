begin;
select plan(2);

select is(pg_get_function_arguments('pgidem.show_settings'::regproc), '', 'no parameter');
select is(pg_get_function_result('pgidem.show_settings'::regproc), 'pgidem.settings', 'the row type of the table');

select * from finish();
rollback;
