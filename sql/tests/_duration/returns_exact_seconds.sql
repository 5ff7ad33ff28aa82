begin;
select plan(6);

-- Compared as text: as intervals, 1 day equals 24:00:00.
select is(pgidem._duration('p_ttl', value)::text, seconds, value::text)
from (values
  (interval '1 day', '24:00:00'),
  (interval '1 week 2 hours', '170:00:00'),
  (interval '1 day -1 hour', '23:00:00'),
  (interval '0.000001 seconds', '00:00:00.000001'),
  (interval '3652 days 12 hours', '87660:00:00'),
  (interval '3652 days 11:59:59.999999', '87659:59:59.999999')
) v (value, seconds);

select * from finish();
rollback;
