begin;
-- M9: a lock_timeout of 0 waits for ever, and one of 25 days does not fit.
select plan(5);

select is(pgidem._wait_limit(deadline), expected, deadline::text)
from (values
  (now() - interval '1 hour', '1ms'),
  (clock_timestamp(), '1ms'),
  (now() + interval '25 days', '2073600000ms'),
  (now() + interval '10 years', '2073600000ms')
) v (deadline, expected);
set local lock_timeout = '2073600000ms';
select is(current_setting('lock_timeout'), '24d', 'which is 24 days');

select * from finish();
rollback;
