create or replace function pgidem.cleanup_runs(
  p_limit integer default 20
)
returns setof pgidem.cleanup_run
language plpgsql
stable
parallel safe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off
as $$
begin
  if p_limit is null or p_limit < 1 then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'invalid argument',
      detail = format('p_limit is %s.', coalesce(p_limit::text, 'null')),
      hint = 'Give a number of runs, at least 1.';
  end if;
  return query
  select r.*
  from pgidem.cleanup_run r
  order by r.id desc
  limit p_limit;
end
$$;

comment on function pgidem.cleanup_runs(integer) is
$$The history of the cleanup, the newest run first, whoever started it. 10000 runs are kept.

A run without ended_at is under way or was stopped before its end. One that could not begin, for
want of a connection or a right, is not among them: see cron.job_run_details, or the log of whatever
starts it.

Parameters:
p_limit: how many runs to return at most, at least 1.

Returns:
One row for each run: started_at, ended_at, batches and deleted tell how it went.

Errors:
22023: p_limit is null or less than 1.
55P03: a lock on the table was held for 2 seconds.

Example:
-- as an operator
call pgidem.cleanup();
select batches, deleted, ended_at is not null as ended
from pgidem.cleanup_runs(p_limit => 1);
--> 1 | 0 | t$$;

revoke all on function pgidem.cleanup_runs(integer) from public;
