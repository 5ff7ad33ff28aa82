begin;
select plan(4);

create temporary table schedules as
select n, pgidem._cron_schedule(n * interval '1 minute') as schedule from generate_series(1, 1500) n;
select set_eq(
  'select n from schedules where schedule is not null',
  $$
    select n from generate_series(1, 59) n where 60 % n = 0
    union all
    select n * 60 from generate_series(1, 24) n where 24 % n = 0
  $$,
  'minutes that divide an hour, hours that divide a day, and a day'
);

-- The minutes of a day at which cron would start it: of each field either any, one, or every so many.
create temporary view starts as
select s.n, h.hour * 60 + m.minute as minute
from schedules s
cross join lateral regexp_match(s.schedule, '^(\*|0)(?:/(\d+))? (\*|0)(?:/(\d+))? \* \* \*$') f (part)
cross join generate_series(0, 23) h (hour)
cross join generate_series(0, 59) m (minute)
where s.schedule is not null
  and m.minute % case f.part[1] when '0' then 60 else coalesce(f.part[2], '1')::integer end = 0
  and h.hour % case f.part[3] when '0' then 24 else coalesce(f.part[4], '1')::integer end = 0;
select is_empty(
  $$
    select * from starts s where s.minute % s.n <> 0
    union all
    (select n, m from schedules s cross join generate_series(0, 1439, s.n) m where s.schedule is not null except select * from starts)
  $$,
  'each starts at every multiple of itself, and at nothing else'
);
select is(pgidem._cron_schedule('1 day'), '0 0 * * *', 'a day is 24 hours');
select is(pgidem._cron_schedule('2 days'), null, 'no schedule counts days');

select * from finish();
rollback;
