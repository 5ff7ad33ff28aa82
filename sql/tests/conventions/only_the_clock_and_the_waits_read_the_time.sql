begin;
\ir ../_alone.psql
\ir ../_sources.psql
select plan(2);

-- Rules ask _now, which a test can replace. A bound is real time, and so are the deadline that it is counted from and a token,
-- which no clock of a test may turn back.
prepare offenders as
select s.name::text
from sources s
where replace(replace(s.code, 'pgidem._now(', ''), 'v_deadline := clock_timestamp() + v_wait;', '')
  ~* '\m((now|clock_timestamp|transaction_timestamp|statement_timestamp|timeofday)\s*\(|current_time|current_timestamp|current_date|localtime|localtimestamp)';

select set_eq('offenders', array['_now', '_wait_limit', '_next_token'], 'the clock, what is left of a wait, and a token');

create function pgidem.planted_now() returns timestamptz language sql return now();
create function pgidem.planted_word() returns void language plpgsql as $$ begin perform localtimestamp; end $$;
create function pgidem.planted_ok() returns void language plpgsql as $$ begin perform pgidem._now(); end $$;
select set_eq('offenders', array['_now', '_wait_limit', '_next_token', 'planted_now', 'planted_word'], 'other readings are found');

select * from finish();
rollback;
