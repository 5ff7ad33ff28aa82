/*
Three short steps with a COMMIT after each, because one transaction would hold its locks on both tables through the
validation. Each ALTER TABLE gives up after 100 ms and tries again: while it waits, every idem_begin queues behind it.
Committed steps are recognised by the constraints in the catalog, so a rerun finishes a half done one. A procedure that
commits can have no SET clause, and no COMMIT may stand in an exception block: names are qualified instead.
*/
create or replace procedure pgidem.attach_principals(
  p_table regclass,
  p_column name default 'id'
)
language plpgsql
security invoker
as $$
declare
  c_final constant text := 'idempotency_keys_principal_id_fkey';
  c_working constant text := 'idempotency_keys_principal_id_fkey_new';
  c_attempts constant integer := 100;
  v_column smallint;
  v_step text;
  v_sql text;
  v_done boolean;
begin
  select a.attnum into v_column
  from pg_catalog.pg_attribute a
  where a.attrelid = p_table
    and a.attname = p_column
    and a.attnum > 0
    and not a.attisdropped
    and a.atttypid = 'pg_catalog.uuid'::pg_catalog.regtype
    and exists (
      select from pg_catalog.pg_index i
      where i.indrelid = a.attrelid
        and i.indisunique and i.indimmediate and i.indisvalid and i.indpred is null
        and i.indnkeyatts = 1 and i.indkey[0] = a.attnum
    );
  if v_column is null then
    raise exception using
      errcode = 'invalid_parameter_value',
      message = 'no such table of principals',
      detail = pg_catalog.format('%s has no column %I of type uuid with a primary key or unique constraint of its own.',
        coalesce(p_table::pg_catalog.text, 'p_table'), p_column),
      hint = 'Name the table of users and its uuid key: call pgidem.attach_principals(''public.users'', ''id'').';
  end if;

  foreach v_step in array array['clear', 'add', 'validate', 'swap'] loop
    v_sql := null;
    if v_step = 'clear' then
      -- A working constraint that a run for another table left behind.
      select pg_catalog.format('alter table pgidem.idempotency_keys drop constraint %I', c_working) into v_sql
      from pg_catalog.pg_constraint c
      where c.conrelid = 'pgidem.idempotency_keys'::pg_catalog.regclass
        and c.conname = c_working
        and (c.confrelid <> p_table or c.confkey <> array[v_column]);
    elsif v_step = 'add' then
      if not exists (
        select from pg_catalog.pg_constraint c
        where c.conrelid = 'pgidem.idempotency_keys'::pg_catalog.regclass
          and c.conname in (c_working, c_final)
          and c.confrelid = p_table
          and c.confkey = array[v_column]
      ) then
        v_sql := pg_catalog.format(
          'alter table pgidem.idempotency_keys add constraint %I foreign key (principal_id) references %s (%I) on delete cascade deferrable initially deferred not valid',
          c_working, p_table, p_column);
      end if;
    elsif v_step = 'validate' then
      select pg_catalog.format('alter table pgidem.idempotency_keys validate constraint %I', c.conname) into v_sql
      from pg_catalog.pg_constraint c
      where c.conrelid = 'pgidem.idempotency_keys'::pg_catalog.regclass
        and c.conname in (c_working, c_final)
        and not c.convalidated;
    elsif exists (
      select from pg_catalog.pg_constraint c
      where c.conrelid = 'pgidem.idempotency_keys'::pg_catalog.regclass
        and c.conname = c_working
    ) then
      v_sql := pg_catalog.format(
        'alter table pgidem.idempotency_keys drop constraint if exists %1$I; '
        'alter table pgidem.idempotency_keys rename constraint %2$I to %1$I; '
        'comment on constraint %1$I on pgidem.idempotency_keys is %3$L',
        c_final, c_working,
        'An unknown principal fails at COMMIT with SQLSTATE 23503 and nothing takes effect. attach_principals points it elsewhere.');
    end if;
    continue when v_sql is null;

    v_done := false;
    for v_attempt in 1 .. c_attempts loop
      begin
        set local lock_timeout = '100ms';
        execute v_sql;
        v_done := true;
      exception
        when lock_not_available then
          if v_attempt = c_attempts then
            raise;
          end if;
      end;
      commit;
      exit when v_done;
      -- Lets those that queued up behind the lock request pass.
      perform pg_catalog.pg_sleep(0.05);
    end loop;
  end loop;
end
$$;

comment on procedure pgidem.attach_principals(regclass, name) is
$$Points the foreign key of idempotency_keys at the application's own table, without stopping traffic: adds the new key unvalidated, validates it, then swaps it in, each step in a transaction of its own with a lock timeout of 100 ms and 100 attempts. Run it again to finish a run that was interrupted, or to attach another table. Call it outside a transaction block, as the owner of the schema.

Parameters:
p_table: the table of users.
p_column: its uuid column, which needs a primary key or unique constraint of its own.
Errors: 22023 when the table has no such column. 23503 when a stored key belongs to nobody in the table: delete those keys or add the rows, then run it again. 55P03 when the locks could not be had. 2D000 inside a transaction block. 42501 for anybody but the owner, or without REFERENCES on the table.
Example: call pgidem.attach_principals('public.users');$$;

revoke all on procedure pgidem.attach_principals(regclass, name) from public;
