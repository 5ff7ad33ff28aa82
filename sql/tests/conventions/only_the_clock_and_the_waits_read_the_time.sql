begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

-- Rules ask _now, which a test can replace. A bound is real time: idem_begin counts it from the clock itself.
prepare offenders as
select s.name::text
from sources s
where s.code ~* '\m(now|clock_timestamp|transaction_timestamp|statement_timestamp|timeofday|age)\s*\('
   and replace(s.code, 'pgidem._now(', '') ~* '\m(now|clock_timestamp|transaction_timestamp|statement_timestamp|timeofday|age)\s*\('
   or s.code ~* '\m(current_time|current_timestamp|current_date|localtime|localtimestamp)\M';

select set_eq('offenders', array['_now', '_wait_limit', 'idem_begin'], 'the clock, what is left of a wait, and its deadline');

create function pgidem.planted_now() returns timestamptz language sql return now();
create function pgidem.planted_word() returns void language plpgsql as $$ begin perform localtimestamp; end $$;
create function pgidem.planted_ok() returns void language plpgsql as $$ begin perform pgidem._now(); end $$;
select set_eq('offenders', array['_now', '_wait_limit', 'idem_begin', 'planted_now', 'planted_word'], 'another reading is found');

select * from finish();
rollback;
