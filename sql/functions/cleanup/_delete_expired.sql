/*
A batch goes by range: from the mark where the last one ended to the expires_at of its last row. That is one scan of an index
for each table, with nothing locked before and no row ids, which mean nothing across the workers of a distributed engine.
But it waits for a row that somebody holds, and it cannot end between rows of one instant. Where it would have to, or has
waited too long, the batch goes row by row, past those that are held.

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
  v_next timestamptz;
  v_records integer;
begin
  -- The rows of the batch and the one behind them.
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

  if v_next is distinct from p_mark then
    begin
      delete from pgidem.idempotency_keys k
      where k.expires_at >= v_from
        and k.expires_at <= p_mark;
      get diagnostics p_deleted = row_count;
      delete from pgidem.idempotency_record k
      where k.expires_at >= v_from
        and k.expires_at <= p_mark
        and k.live_until <= v_now;
      get diagnostics v_records = row_count;
      p_deleted := p_deleted + v_records;
      return;
    exception
      when lock_not_available then
        null; -- row by row
    end;
  end if;

  -- A row that was given a new life since the subquery saw it fails the test of the lock. The delete names rows by ctid
  -- alone: a join would offer a plan that was cheap when the table was small and then, cached, reads all expired rows.
  delete from pgidem.idempotency_keys k
  where k.ctid = any (array(
    select e.ctid
    from pgidem.idempotency_keys e
    where e.expires_at >= v_from
      and e.expires_at <= p_mark
    order by e.expires_at
    limit p_limit
    for update skip locked
  ));
  get diagnostics p_deleted = row_count;
  delete from pgidem.idempotency_record k
  where k.ctid = any (array(
    select e.ctid
    from pgidem.idempotency_record e
    where e.expires_at >= v_from
      and e.expires_at <= p_mark
      and e.live_until <= v_now
    order by e.expires_at
    limit p_limit - p_deleted
    for update skip locked
  ));
  get diagnostics v_records = row_count;
  p_deleted := p_deleted + v_records;
  -- Where all rows of an instant are held there is no way on.
  p_more := p_more and (p_deleted > 0 or p_mark > v_from);
end
$$;

comment on function pgidem._delete_expired(integer, timestamptz) is
  'Deletes at most p_limit expired rows of both tables, the oldest from p_mark on. Returns where it ended, how many it deleted, and whether expired rows lie behind. Runs under the settings of the calling function: a short lock_timeout, and neither sequential nor bitmap scans.';

revoke all on function pgidem._delete_expired(integer, timestamptz) from public;
