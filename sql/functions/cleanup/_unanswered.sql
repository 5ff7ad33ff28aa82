/*
No index tells which claims have no answer: it would make every finish write to it. So a table of up to p_pages pages is
read to its end, and of a larger one that many pages, drawn anew for each call: a page holds what was written together, and
a fixed choice would be blind to the same rows for ever. A committed claim in idempotency_keys is one that nobody will
complete, since only its own transaction could have; what runs there cannot be seen.
*/
create or replace function pgidem._unanswered(
  p_table regclass,
  p_pages integer,
  out p_running bigint,
  out p_abandoned bigint,
  out p_live bigint,
  out p_is_estimate boolean
)
language plpgsql
volatile
parallel unsafe
security invoker
as $$
declare
  v_now constant timestamptz := pgidem._now();
  v_pages constant bigint := pg_relation_size(p_table) / current_setting('block_size')::integer;
  v_share constant float8 := least(1, p_pages::float8 / greatest(v_pages, 1));
begin
  if p_table = 'pgidem.idempotency_keys'::regclass then
    select null::bigint, count(*) filter (where k.state = 'in_progress'), count(*)
    into p_running, p_abandoned, p_live
    from pgidem.idempotency_keys k tablesample system (100 * v_share)
    where k.expires_at > v_now;
  else
    select count(*) filter (where k.state = 'in_progress' and k.live_until > v_now),
      count(*) filter (where k.state = 'in_progress' and k.live_until <= v_now), count(*) filter (where k.live_until > v_now)
    into p_running, p_abandoned, p_live
    from pgidem.idempotency_record k tablesample system (100 * v_share);
  end if;
  p_running := round(p_running / v_share)::bigint;
  p_abandoned := round(p_abandoned / v_share)::bigint;
  p_live := round(p_live / v_share)::bigint;
  p_is_estimate := v_share < 1;
end
$$;

comment on function pgidem._unanswered(regclass, integer) is
  'Counts the committed claims of a table that have no answer: those whose lease is running, null in idempotency_keys, and those that nobody finishes; beside them all rows that live. Reads p_pages pages at most and estimates from there.';

revoke all on function pgidem._unanswered(regclass, integer) from public;
