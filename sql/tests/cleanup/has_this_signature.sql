begin;
select plan(2);

select is(
  pg_get_function_arguments('pgidem.cleanup'::regproc),
  'IN p_batch_size integer DEFAULT NULL::integer, IN p_max_batches integer DEFAULT NULL::integer, IN p_pause interval DEFAULT NULL::interval',
  'parameters'
);
select is(prokind, 'p', 'a procedure, which can commit') from pg_proc where oid = 'pgidem.cleanup'::regproc;

select * from finish();
rollback;
