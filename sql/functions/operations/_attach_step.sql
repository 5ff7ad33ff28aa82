/*
One step of attach_principals, with a search_path of its own: the procedure itself can have none, since it commits, and an
operator that somebody planted in the path of the owner would run with the owner's rights. What a step finds done it
leaves alone.
*/
create or replace function pgidem._attach_step(
  p_step text,
  p_table regclass,
  p_column name
)
returns boolean
language plpgsql
volatile
parallel unsafe
security invoker
set search_path = pg_catalog, pg_temp
set lock_timeout = '100ms'
as $$
declare
  c_keys constant regclass := 'pgidem.idempotency_keys'::regclass;
  c_final constant text := 'idempotency_keys_principal_id_fkey';
  c_working constant text := 'idempotency_keys_principal_id_fkey_new';
  v_column smallint;
  v_name name;
begin
  select a.attnum into v_column
  from pg_attribute a
  where a.attrelid = p_table
    and a.attname = p_column
    and a.attnum > 0
    and not a.attisdropped
    and a.atttypid = 'uuid'::regtype
    and exists (
      select from pg_index i
      where i.indrelid = a.attrelid
        and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null
        and i.indnkeyatts = 1 and i.indkey[0] = a.attnum
    );
  if v_column is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'no such table of principals',
      detail = format('%s has no column %s of type uuid with a primary key or unique constraint of its own.',
        coalesce(p_table::text, 'p_table'), coalesce(quote_ident(p_column), 'null')),
      hint = 'Name the table of users and its uuid key: call pgidem.attach_principals(''public.users'', ''id'').';
  end if;

  -- One step at a time: what it finds in the catalog must still be so when it acts.
  lock table only pgidem.idempotency_keys in share update exclusive mode;

  if p_step = 'clear' then
    -- A working constraint that a run for another table left behind.
    if exists (
      select from pg_constraint c
      where c.conrelid = c_keys and c.conname = c_working and (c.confrelid <> p_table or c.confkey <> array[v_column])
    ) then
      alter table pgidem.idempotency_keys drop constraint idempotency_keys_principal_id_fkey_new;
      return true;
    end if;
  elsif p_step = 'add' then
    if not exists (
      select from pg_constraint c
      where c.conrelid = c_keys and c.conname in (c_working, c_final) and c.confrelid = p_table and c.confkey = array[v_column]
    ) then
      execute format(
        'alter table pgidem.idempotency_keys add constraint %I foreign key (principal_id) references %s (%I) on delete cascade deferrable initially deferred not valid',
        c_working, p_table, p_column);
      return true;
    end if;
  elsif p_step = 'validate' then
    select c.conname into v_name
    from pg_constraint c
    where c.conrelid = c_keys and c.conname in (c_working, c_final) and not c.convalidated
      and c.confrelid = p_table and c.confkey = array[v_column];
    if found then
      execute format('alter table pgidem.idempotency_keys validate constraint %I', v_name);
      return true;
    end if;
  elsif exists (
    select from pg_constraint c
    where c.conrelid = c_keys and c.conname = c_working and c.confrelid = p_table and c.confkey = array[v_column]
  ) then
    alter table pgidem.idempotency_keys drop constraint if exists idempotency_keys_principal_id_fkey;
    alter table pgidem.idempotency_keys rename constraint idempotency_keys_principal_id_fkey_new to idempotency_keys_principal_id_fkey;
    comment on constraint idempotency_keys_principal_id_fkey on pgidem.idempotency_keys is
      'An unknown principal fails at COMMIT with SQLSTATE 23503 and nothing takes effect. attach_principals points it elsewhere.';
    return true;
  elsif not exists (
    select from pg_constraint c
    where c.conrelid = c_keys and c.conname = c_final and c.confrelid = p_table and c.confkey = array[v_column]
  ) then
    raise exception using
      errcode = 'object_not_in_prerequisite_state',
      message = 'another run of attach_principals came between',
      detail = 'It attached another table, or began to, while this run was under way.',
      hint = 'Agree on one table and run attach_principals for it again.';
  end if;
  return false;
end
$$;

comment on function pgidem._attach_step(text, regclass, name) is
  'Does one step of attach_principals, clear, add, validate or swap, waiting 100 ms for each lock. False when there was nothing to do.';

revoke all on function pgidem._attach_step(text, regclass, name) from public;
