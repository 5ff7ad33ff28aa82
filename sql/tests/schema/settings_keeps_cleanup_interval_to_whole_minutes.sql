begin;
\ir ../_alone.psql
select plan(5);

select throws_ok(
  format('update pgidem.settings set cleanup_interval = %L', value),
  '23514', null, 'not ' || value
)
from unnest(array['30 seconds', '90 seconds', '1 minute 1 microsecond']) value;
select lives_ok(
  format('update pgidem.settings set cleanup_interval = %L', value),
  value
)
from unnest(array['1 minute', '120 seconds']) value;

select * from finish();
rollback;
