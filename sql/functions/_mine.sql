/*
State alone does not tell whose claim a row is: after a rollback to a savepoint, or after COMMIT AND CHAIN, the row of
another transaction can stand in its place. A row that is visible was written by this transaction exactly when its xmin
is this transaction's id or that of a subtransaction, and still in progress. Subtransactions have larger ids than their
parent, so xmin is extended to 64 bits from there. Stable: during one statement the answer for a visible row cannot
change.
*/
create or replace function pgidem._mine(
  p_xmin xid
)
returns boolean
language plpgsql
stable
parallel unsafe
security invoker
as $$
declare
  v_top constant bigint := pg_current_xact_id_if_assigned()::text::bigint;
  v_ahead bigint;
begin
  if v_top is null then
    return false;
  end if;
  v_ahead := (p_xmin::text::bigint - (v_top & 4294967295) + 4294967296) % 4294967296;
  -- The xmin of a row that was frozen 2^31 transactions ago reads as a future one, which pg_xact_status refuses.
  -- No subtransaction is further ahead of the newest finished one than this.
  return v_ahead < 2147483648
    and v_top + v_ahead < pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 16777216
    and pg_xact_status((v_top + v_ahead)::text::xid8) = 'in progress';
end
$$;

comment on function pgidem._mine(xid) is
  'True when a visible row with this xmin was written by the current transaction or one of its subtransactions. Assigns no transaction id.';

revoke all on function pgidem._mine(xid) from public;
