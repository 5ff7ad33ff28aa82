begin;
-- Its results are those of idem_claim, in the same order.
select plan(3);

select is(
  pg_get_function_arguments('pgidem.idem_claim_committed'::regproc),
  replace(pg_get_function_arguments('pgidem.idem_claim'::regproc), 'p_', 'IN p_') || ', ' || (
    select string_agg(format('INOUT %s %s DEFAULT NULL::%2$s', a.attname, format_type(a.atttypid, null)), ', ' order by a.attnum)
    from pg_attribute a
    where a.attrelid = 'pgidem.claim_result'::regclass
      and a.attnum > 0
      and not a.attisdropped
  ),
  'the parameters of idem_claim, and its results'
);
select ok(not prosecdef, 'the rights of its caller') from pg_proc where oid = 'pgidem.idem_claim_committed'::regproc;
select is(proconfig, null, 'no SET clause, which would forbid the COMMIT') from pg_proc where oid = 'pgidem.idem_claim_committed'::regproc;

select * from finish();
rollback;
