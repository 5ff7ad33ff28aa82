begin;
\ir ../_setup.psql
select plan(9);

prepare save(uuid, uuid, text, bytea) as select pgidem.idem_save_final($1, $2, $3, $4, 404, '{}');
prepare ttl(interval) as select pgidem.idem_save_final(:'principal', :'key', 'pay', :'fingerprint', 404, '{}', p_ttl => $1);
prepare wait(interval) as select pgidem.idem_save_final(:'principal', :'key', 'pay', :'fingerprint', 404, '{}', p_lock_timeout => $1);

select throws_ok(format('execute save(%L, %L, %L, %L)', principal_id, key, action, fingerprint), '22023', 'invalid argument', name)
from (values
  ('p_principal_id', null, :'key', 'pay', :'fingerprint'),
  ('p_key', :'principal', null, 'pay', :'fingerprint'),
  ('p_action', :'principal', :'key', null, :'fingerprint'),
  ('p_request_sha256', :'principal', :'key', 'pay', '\x00')
) a (name, principal_id, key, action, fingerprint);
select throws_ok(format('execute %s(%L)', parameter, value), '22023', 'invalid duration', concat_ws(' ', parameter, value))
from unnest(array['ttl', 'wait']) parameter
cross join unnest(array['0', '1 month']) value;
select is_empty('select from pgidem.idempotency_keys where ' || :'this_key', 'nothing is written');

select * from finish();
rollback;
