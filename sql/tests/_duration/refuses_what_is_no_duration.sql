begin;
select plan(11);

select throws_ok(format('select pgidem._duration(%L, %L)', 'p_ttl', value), '22023', 'invalid duration', coalesce(value, 'null'))
from unnest(array[
  null, '0', '0 days', '-0.000001 seconds', '1 day -24 hours', '1 hour -1 day',
  '1 month', '1 month -30 days', '-1 month 60 days', '1 year', '3652 days 12:00:00.000001'
]) value;

select * from finish();
rollback;
