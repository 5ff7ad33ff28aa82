begin;
\ir ../_record.psql
select plan(2);

select results_eq(
  'select outcome, token > 0, retry_after, live_until > clock_timestamp(), response_status, content_type, location, etag, response_body, one_time_secret from ' || :'claim_key',
  $$values ('claimed', true, null::integer, true, null::integer, null, null, null, null::bytea, false)$$,
  'claimed, with a token and nothing to answer with'
);
select is(count(*)::integer, 1, 'one row') from pgidem.idempotency_record where :this_record;

select * from finish();
rollback;
