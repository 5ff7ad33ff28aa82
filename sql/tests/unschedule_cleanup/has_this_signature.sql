begin;
select plan(2);

select is(pg_get_function_arguments('pgidem.unschedule_cleanup'::regproc), '', 'no parameter');
select is(pg_get_function_result('pgidem.unschedule_cleanup'::regproc), 'boolean', 'result');

select * from finish();
rollback;
