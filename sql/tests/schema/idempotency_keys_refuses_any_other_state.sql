begin;
\ir ../_setup.psql
select plan(2);

prepare insert_state(text) as
insert into pgidem.idempotency_keys (principal_id, key, action, request_sha256, state, expires_at)
values (:'principal', :'key', 'pay', :'fingerprint', $1, now() + interval '1 hour');

select throws_ok($$execute insert_state('failed')$$, '23514', null, 'failed is no state');
select lives_ok($$execute insert_state('completed')$$, 'completed is one');

select * from finish();
rollback;
