-- migration 2
-- What a database of release 0.1.0 can hold: keys in every state, written by the functions of that release, an own table of
-- users, changed settings. The key says what it is: its last digit is used by the test of the upgrade.
create table public.users (id uuid primary key);
insert into public.users values ('00000000-0000-4000-8000-000000000001');
insert into pgidem.principals values ('00000000-0000-4000-8000-000000000001');
call pgidem.attach_principals('public.users');
update pgidem.settings set key_ttl = interval '365 days', cleanup_batch_size = 7;

-- 1: completed with a body
begin;
select pgidem.idem_begin('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a001', 'pay', sha256('request'));
select pgidem.idem_complete('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a001', 201,
  '{"id": "00000000-0000-4000-8000-0000000000ff", "amount": 1.10, "version": 3}');
commit;

-- 2: completed without one
begin;
select pgidem.idem_begin('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a002', 'pay', sha256('request'));
select pgidem.idem_complete('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a002', 204, null);
commit;

-- 3: a one-time secret
begin;
select pgidem.idem_begin('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a003', 'token', sha256('request'));
select pgidem.idem_complete('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a003', 201,
  '{"id": "00000000-0000-4000-8000-0000000000fe"}', true);
commit;

-- 4: a final refusal
select pgidem.idem_save_final('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a004', 'pay', sha256('request'),
  404, '{"code": "not_found"}');

-- 5: expired
begin;
select pgidem.idem_begin('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a005', 'pay', sha256('request'));
select pgidem.idem_complete('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a005', 200, '{}');
commit;
update pgidem.idempotency_keys
set created_at = '2020-01-01 00:00Z', expires_at = '2020-01-02 00:00Z'
where key = '00000000-0000-4000-8000-00000000a005';

-- 6: committed without a response
select pgidem.idem_begin('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-00000000a006', 'pay', sha256('request'));
