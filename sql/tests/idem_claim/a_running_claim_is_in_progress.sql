begin;
\ir ../_record.psql
select plan(1);

select live_until from :claim_key \gset
select results_eq(
  'select outcome, token, retry_after, live_until, response_status, content_type, location, etag, response_body, one_time_secret from ' || :'claim_key',
  format($$values ('in_progress', null::bigint, 1, %L::timestamptz, null::integer, null, null, null, null::bytea, false)$$, :'live_until'),
  'in progress until the end of its lease'
);

select * from finish();
rollback;
