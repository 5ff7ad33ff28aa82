/*
A batch goes by range: from the mark where the last one ended to the expires_at of its last row. That is one scan of an index
for each table, with nothing locked before and no row ids, which mean nothing across the workers of a distributed engine.
But it waits for a row that somebody holds, and it cannot end between rows of one instant. So a batch goes row by row, past those
that are held, where it has waited too long, and through the instant that has more rows than fit.

The mark is what keeps it fast beside a long transaction: until that ends, all that was deleted still stands in the index.
More rows may have the instant of the mark, so the next batch begins there and not behind it.
*/
create or replace function pgidem._delete_expired(
  p_limit integer,
  inout p_mark timestamptz,
  out p_deleted integer,
  out p_more boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_from constant timestamptz := p_mark;
  v_now constant timestamptz := pgidem._now();
  v_start timestamptz;
  v_end timestamptz;
  v_next timestamptz;
  v_rows integer;
begin
  -- The last row of the batch, and the one behind it.
  select max(e.expires_at) filter (where e.place <= p_limit), max(e.expires_at) filter (where e.place > p_limit)
  into p_mark, v_next
  from (
    select u.expires_at, row_number() over (order by u.expires_at) as place
    from (
      (
        select k.expires_at
        from pgidem.idempotency_keys k
        where k.expires_at >= v_from
          and k.expires_at <= v_now
        order by k.expires_at
        limit p_limit::bigint + 1
      )
      union all
      (
        select k.expires_at
        from pgidem.idempotency_record k
        where k.expires_at >= v_from
          and k.expires_at <= v_now
        order by k.expires_at
        limit p_limit::bigint + 1
      )
    ) u
    order by u.expires_at
    limit p_limit::bigint + 1
  ) e;
  p_deleted := 0;
  p_more := v_next is not null;
  if p_mark is null then
    p_mark := v_from;
    return;
  end if;

  v_end := p_mark;
  if p_mark = v_next then
    v_end := greatest(
      (select max(k.expires_at) from pgidem.idempotency_keys k where k.expires_at >= v_from and k.expires_at < v_next),
      (select max(k.expires_at) from pgidem.idempotency_record k where k.expires_at >= v_from and k.expires_at < v_next)
    );
  end if;

  v_start := v_from;
  if v_end is not null then
    begin
      delete from pgidem.idempotency_keys k
      where k.expires_at >= v_from
        and k.expires_at <= v_end;
      get diagnostics p_deleted = row_count;
      delete from pgidem.idempotency_record k
      where k.expires_at >= v_from
        and k.expires_at <= v_end
        and k.live_until <= v_now;
      get diagnostics v_rows = row_count;
      p_deleted := p_deleted + v_rows;
      if v_end = p_mark then
        return;
      end if;
      v_start := p_mark;
    exception
      when lock_not_available then
        p_deleted := 0;
        p_mark := v_end;
    end;
  end if;

  -- A row that was given a new life since the subquery saw it fails the test of the lock. A ctid means nothing across the
  -- parts of a partitioned table, so the delete tests again, in a form that no index serves: a join, or a range, would offer
  -- a plan that was cheap when the table was small and then, cached, reads all expired rows.
  delete from pgidem.idempotency_keys k
  where k.ctid = any (array(
    select e.ctid
    from pgidem.idempotency_keys e
    where e.expires_at >= v_start
      and e.expires_at <= p_mark
    order by e.expires_at
    limit p_limit - p_deleted
    for update skip locked
  ))
    and (k.expires_at <= p_mark) is true;
  get diagnostics v_rows = row_count;
  p_deleted := p_deleted + v_rows;
  delete from pgidem.idempotency_record k
  where k.ctid = any (array(
    select e.ctid
    from pgidem.idempotency_record e
    where e.expires_at >= v_start
      and e.expires_at <= p_mark
      and e.live_until <= v_now
    order by e.expires_at
    limit greatest(p_limit - p_deleted, 0)
    for update skip locked
  ))
    and (k.expires_at <= p_mark) is true
    and k.live_until <= v_now;
  get diagnostics v_rows = row_count;
  p_deleted := p_deleted + v_rows;
  if p_more and p_deleted = 0 and p_mark = v_from then
    -- All rows of this instant are held: on to the next one.
    p_mark := least(
      (select min(k.expires_at) from pgidem.idempotency_keys k where k.expires_at > v_from and k.expires_at <= v_now),
      (select min(k.expires_at) from pgidem.idempotency_record k where k.expires_at > v_from and k.expires_at <= v_now)
    );
    p_more := p_mark is not null;
    p_mark := coalesce(p_mark, v_from);
  end if;
end
$$;

comment on function pgidem._delete_expired(integer, timestamptz) is
  'Deletes at most p_limit expired rows of both tables, the oldest from p_mark on. Returns where it ended, how many it deleted, and whether expired rows lie behind. Runs under the settings of the calling function: a short lock_timeout, and neither sequential nor bitmap scans.';

revoke all on function pgidem._delete_expired(integer, timestamptz) from public;
