begin;
select plan(2);

select is(
  pg_get_function_arguments('pgidem.attach_principals'::regproc),
  'IN p_table regclass, IN p_column name DEFAULT ''id''::name',
  'parameters'
);
select is(prokind, 'p', 'a procedure, which can commit') from pg_proc where oid = 'pgidem.attach_principals'::regproc;

select * from finish();
rollback;
