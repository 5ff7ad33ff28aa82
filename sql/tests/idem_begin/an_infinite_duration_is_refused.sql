begin;
-- PostgreSQL 15 and 16 know no infinite interval and refuse the text.
\ir ../_setup.psql
select plan(4);

prepare ttl(interval) as select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => $1);
prepare wait(interval) as select pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_lock_timeout => $1);

select throws_ok(
  format('execute %s(%L)', parameter, value),
  case when current_setting('server_version_num')::integer < 170000 then '22007' else '22023' end,
  null,
  concat_ws(' ', parameter, value)
)
from unnest(array['ttl', 'wait']) parameter
cross join unnest(array['infinity', '-infinity']) value;

select * from finish();
rollback;
