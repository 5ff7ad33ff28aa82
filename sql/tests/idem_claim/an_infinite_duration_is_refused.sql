begin;
-- PostgreSQL 15 and 16 know no infinite interval and refuse the text.
\ir ../_record.psql
select plan(8);

prepare lease(interval) as select pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_lease => $1);
prepare retention(interval) as select pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_retention => $1);
prepare wait(interval) as select pgidem.idem_claim(:'user_id', :'key', :'fingerprint', p_lock_timeout => $1);
prepare renewal(interval) as select pgidem.idem_renew(:'user_id', :'key', 1, $1);

select throws_ok(
  format('execute %s(%L)', parameter, value),
  case when current_setting('server_version_num')::integer < 170000 then '22007' else '22023' end,
  null,
  concat_ws(' ', parameter, value)
)
from unnest(array['lease', 'retention', 'wait', 'renewal']) parameter
cross join unnest(array['infinity', '-infinity']) value;

select * from finish();
rollback;
