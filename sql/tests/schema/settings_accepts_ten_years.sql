begin;
\ir ../_alone.psql
select plan(5);

select lives_ok(
  format('update pgidem.settings set %s = interval ''3652 days 12 hours''', name),
  name || ' = 10 years'
)
from unnest(array['key_ttl', 'lock_timeout', 'lease', 'retention', 'cleanup_interval']) name;

select * from finish();
rollback;
