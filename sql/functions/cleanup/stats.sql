/*
Nothing here reads a large table from end to end: counts of live rows are the planner's estimates, the backlog is counted
along its index up to a bound, and claims without an answer are counted on 1024 pages.
*/
create or replace function pgidem.stats()
returns setof pgidem.stat
language plpgsql
volatile
parallel unsafe
security definer
set search_path = pg_catalog, pg_temp
set lock_timeout = '2s'
set enable_seqscan = off
as $$
declare
  c_bound constant integer := 100000;
  v_now constant timestamptz := pgidem._now();
  v_table regclass;
  v_count bigint;
  v_oldest timestamptz;
  v_created timestamptz;
  v_retention interval;
  v_facts record;
  v_next record;
  v_claims record;
  v_success timestamptz;
begin
  foreach v_table in array array['pgidem.idempotency_keys'::regclass, 'pgidem.idempotency_record'::regclass]
  loop
    if v_table = 'pgidem.idempotency_keys'::regclass then
      select count(*), min(e.expires_at)
      into v_count, v_oldest
      from (select k.expires_at from pgidem.idempotency_keys k where k.expires_at <= v_now order by k.expires_at limit c_bound) e;
      v_created := (select k.created_at from pgidem.idempotency_keys k order by k.expires_at limit 1);
      v_retention := (select s.key_ttl from pgidem.settings s where s.singleton);
    else
      select count(*), min(e.expires_at)
      into v_count, v_oldest
      from (select k.expires_at from pgidem.idempotency_record k where k.expires_at <= v_now order by k.expires_at limit c_bound) e;
      v_created := (select k.created_at from pgidem.idempotency_record k order by k.expires_at limit 1);
      v_retention := (select s.retention from pgidem.settings s where s.singleton);
    end if;
    select c.relname::text as name, nullif(c.reltuples, -1) as rows, pg_table_size(c.oid) as table_bytes, pg_indexes_size(c.oid) as index_bytes,
      s.n_dead_tup as dead, greatest(s.last_vacuum, s.last_autovacuum) as vacuumed
    into v_facts
    from pg_class c
    left join pg_stat_all_tables s on s.relid = c.oid
    where c.oid = v_table;

    v_claims := pgidem._unanswered(v_table, 1024);

    return query
    select f.*
    from (
      values
        ('rows', v_facts.name, v_facts.rows::numeric, 'rows', true),
        ('expired', v_facts.name, v_count::numeric, 'rows', v_count = c_bound),
        ('oldest_expired_age', v_facts.name, extract(epoch from v_now - v_oldest), 'seconds', false),
        ('dead_rows', v_facts.name, v_facts.dead::numeric, 'rows', true),
        ('vacuum_age', v_facts.name, extract(epoch from v_now - v_facts.vacuumed), 'seconds', false),
        ('table_size', v_facts.name, v_facts.table_bytes::numeric, 'bytes', false),
        ('index_size', v_facts.name, v_facts.index_bytes::numeric, 'bytes', false),
        ('running', v_facts.name, v_claims.p_running::numeric, 'rows', v_claims.p_is_estimate),
        ('abandoned', v_facts.name, v_claims.p_abandoned::numeric, 'rows', v_claims.p_is_estimate),
        ('live', v_facts.name, v_claims.p_live::numeric, 'rows', v_claims.p_is_estimate),
        ('oldest_age', v_facts.name, extract(epoch from v_now - v_created), 'seconds', false),
        ('retention', v_facts.name, extract(epoch from v_retention), 'seconds', false)
    ) f (metric, table_name, value, unit, is_estimate);
  end loop;

  select r.started_at, r.ended_at, r.batches, r.deleted
  into v_facts
  from pgidem.cleanup_run r
  order by r.id desc
  limit 1;
  select r.ended_at
  into v_success
  from pgidem.cleanup_run r
  where r.ended_at is not null
  order by r.id desc
  limit 1;
  v_next := pgidem._next_cleanup(v_now);
  return query
  select f.*
  from (
    values
      ('cleanup_age', null::text, extract(epoch from v_now - v_facts.started_at), 'seconds', false),
      ('cleanup_success_age', null, extract(epoch from v_now - v_success), 'seconds', false),
      ('cleanup_duration', null, extract(epoch from v_facts.ended_at - v_facts.started_at), 'seconds', false),
      ('cleanup_batches', null, v_facts.batches::numeric, null, false),
      ('cleanup_deleted', null, v_facts.deleted::numeric, 'rows', false),
      ('cleanup_jobs', null, (select count(*) from pgidem._cleanup_jobs() j where j.p_active)::numeric, null, false),
      ('next_cleanup', null, extract(epoch from v_next.p_at - v_now), 'seconds', v_next.p_is_estimate)
  ) f (metric, table_name, value, unit, is_estimate);
end
$$;

comment on function pgidem.stats() is
$$Figures of the tables and of the cleanup, for people and for monitoring.

Figures of each table: rows that stand in it; live, those that have not expired; expired, those that
wait for the cleanup, counted up to 100000; oldest_expired_age, how long the first of them has
waited; dead_rows that wait for a vacuum; vacuum_age, the time since the last one; table_size and
index_size; running, leases that somebody works on; abandoned, claims that nobody finishes: in
idempotency_keys those that were committed without idem_complete, whose keys get 409 until they
expire, in idempotency_record leases that ended without an answer. These two and live are counted on
up to 1024 pages, and estimated from there. oldest_age is the time since the row was made that
expires first; retention is for how long the settings keep a stored response.

Figures of the last run of the cleanup: cleanup_age since its start, cleanup_duration (null when it
runs or was stopped), cleanup_batches and cleanup_deleted; cleanup_success_age since the end of the
last run that came to its end; cleanup_runs has the history. cleanup_jobs counts the active jobs of
pg_cron in this database that run it. next_cleanup is the time until the next run is due, negative
when it is late: by the schedule of that job, else estimated from the pace of the last two runs.

No large table is read to its end. Later versions add figures.

Returns:
One row for each figure, with its unit. is_estimate: a figure of the planner, or one whose counting
ended at its bound, or that was estimated from some pages.

Errors:
55P03: a lock on a table was held for 2 seconds.

Example:
-- as an operator
select metric, table_name, value, unit
from pgidem.stats()
where metric = 'expired';
--> expired | idempotency_keys | 0 | rows
--> expired | idempotency_record | 0 | rows$$;

revoke all on function pgidem.stats() from public;
