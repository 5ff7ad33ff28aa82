/*
Short steps with a COMMIT after each, because one transaction would hold its locks on both tables through the
validation. Each ALTER TABLE gives up after 100 ms and tries again: while it waits, every idem_begin queues behind it.
Committed steps are recognised by the constraints in the catalog, so a rerun finishes a half done one. A procedure that
commits can have no SET clause, and no COMMIT may stand in an exception block: so the steps are a function of their own,
and this body calls nothing unqualified.
*/
create or replace procedure pgidem.attach_principals(
  p_table regclass,
  p_column name default 'id'
)
language plpgsql
security invoker
as $$
declare
  c_attempts constant integer := 100;
  v_step text;
  v_done boolean;
  v_changed boolean;
begin
  foreach v_step in array array['clear', 'add', 'validate', 'swap'] loop
    for v_attempt in 1 .. c_attempts loop
      begin
        v_changed := pgidem._attach_step(v_step, p_table, p_column);
        v_done := true;
      exception
        when lock_not_available then
          v_changed := true;
          v_done := false;
          if v_attempt operator(pg_catalog.=) c_attempts then
            raise;
          end if;
      end;
      if v_changed then
        commit;
      end if;
      exit when v_done;
      -- Lets those that queued up behind the lock request pass.
      perform pg_catalog.pg_sleep(0.05);
    end loop;
  end loop;
end
$$;

comment on procedure pgidem.attach_principals(regclass, name) is
$$Points the foreign key of idempotency_keys at the application's own table, without stopping traffic.

It adds the new key unvalidated, validates it, then swaps it in, each step in a transaction of its
own with a lock timeout of 100 milliseconds and 100 attempts. Run it again to finish a run that was
interrupted, or to attach another table. Call it outside a transaction block, as the owner of the
schema.

Until the swap a key must satisfy both the old and the new foreign key, and a violation at COMMIT
can name idempotency_keys_principal_id_fkey_new.

Parameters:
p_table: the table of users.
p_column: its uuid column, which needs a primary key or unique constraint of its own.

Returns:
Nothing.

Errors:
22023: the table has no such column.
23503: a stored key belongs to nobody in the table: delete those keys or add the rows, then run it
  again.
2D000: inside a transaction block.
42501: the caller is not the owner of the schema, or lacks REFERENCES on the table.
55000: a run for another table came between.
55P03: the locks could not be had.

Example:
-- as the owner
create table users (id uuid primary key);
insert into users values ('0192f0c1-2345-7abc-8def-0123456789ab');
call pgidem.attach_principals(p_table => 'users', p_column => 'id');
select confrelid::regclass from pg_constraint where conname = 'idempotency_keys_principal_id_fkey';
--> users$$;

revoke all on procedure pgidem.attach_principals(regclass, name) from public;
