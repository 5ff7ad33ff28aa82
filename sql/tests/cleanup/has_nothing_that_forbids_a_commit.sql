begin;
select plan(2);

select ok(not prosecdef, 'the rights of its caller') from pg_proc where oid = 'pgidem.cleanup'::regproc;
select is(proconfig, null, 'no SET clause') from pg_proc where oid = 'pgidem.cleanup'::regproc;

select * from finish();
rollback;
