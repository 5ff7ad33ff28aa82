begin;
\ir ../_doctor.psql
select plan(6);

create table public.doctor_users (user_id uuid primary key);
savepoint other_keys;
select status as installed, detail as principals from pgidem.doctor() where check_name = 'foreign_key' \gset
alter table pgidem.idempotency_keys add constraint idempotency_keys_principal_id_fkey_new
  foreign key (principal_id) references public.doctor_users (user_id) on delete cascade deferrable initially deferred not valid;
select status as half, mend as half_mend from pgidem.doctor() where check_name = 'foreign_key' \gset
alter table pgidem.idempotency_keys drop constraint idempotency_keys_principal_id_fkey;
alter table pgidem.idempotency_keys drop constraint idempotency_keys_principal_id_fkey_new;
select status as without, mend as without_mend from pgidem.doctor() where check_name = 'foreign_key' \gset
rollback to savepoint other_keys;

select is(:'installed'::text, 'ok', 'as installed');
select is(:'principals'::text, 'principals are rows of pgidem.principals', 'it says whose');
select is(:'half'::text, 'warn', 'attach_principals was interrupted');
select alike(:'half_mend'::text, '%call pgidem.attach_principals(''public.doctor_users'', ''user_id'')', 'the mend finishes it');
select is(:'without'::text, 'warn', 'without one');
select alike(:'without_mend'::text, '%call pgidem.attach_principals(''pgidem.principals'', ''id'')', 'the mend makes it');

select * from finish();
rollback;
