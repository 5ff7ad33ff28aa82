begin;
select plan(2);

select is(pg_get_function_arguments('pgidem.schedule_cleanup'::regproc), '', 'no parameter');
select is(pg_get_function_result('pgidem.schedule_cleanup'::regproc), 'bigint', 'result');

select * from finish();
rollback;
