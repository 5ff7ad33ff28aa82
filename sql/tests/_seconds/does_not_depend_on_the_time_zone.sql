begin;
select plan(3);

-- Here 29 March had 23 hours.
set local timezone = 'Europe/Berlin';
select is(pgidem._seconds(value)::text, seconds, value::text)
from (values (interval '1 day', '24:00:00'), (interval '1 week -0.000001 seconds', '167:59:59.999999')) v (value, seconds);
select is(timestamptz '2026-03-28 12:00+00' + pgidem._seconds('1 day'), '2026-03-29 12:00+00', 'a day has 24 hours');

select * from finish();
rollback;
