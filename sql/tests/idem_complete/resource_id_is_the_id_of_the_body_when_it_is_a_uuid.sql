begin;
-- L1: found by its form, not by a cast whose error would have to be caught.
\ir ../_setup.psql
select plan(15);

create function pg_temp.resource_of(p_principal_id uuid, p_body jsonb) returns uuid language plpgsql as $$
declare
  v_key constant uuid := gen_random_uuid();
begin
  perform pgidem.idem_begin(p_principal_id, v_key, 'pay', sha256('a'));
  perform pgidem.idem_complete(p_principal_id, v_key, 200, p_body);
  return (select resource_id from pgidem.idempotency_keys where principal_id = p_principal_id and key = v_key);
end
$$;

select is(pg_temp.resource_of(:'principal', body), '0192f0c1-2345-7abc-8def-0123456789ab', body::text)
from unnest(array[
  '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}',
  '{"id": "0192F0C1-2345-7ABC-8DEF-0123456789AB", "name": "upper case"}'
]::jsonb[]) body;
select is(pg_temp.resource_of(:'principal', body), null, coalesce(body::text, 'no body'))
from unnest(array[
  null,
  'null',
  '"0192f0c1-2345-7abc-8def-0123456789ab"',
  '["0192f0c1-2345-7abc-8def-0123456789ab"]',
  '{"data": {"id": "0192f0c1-2345-7abc-8def-0123456789ab"}}',
  '{"id": null}',
  '{"id": 19}',
  '{"id": {"id": "0192f0c1-2345-7abc-8def-0123456789ab"}}',
  '{"id": ["0192f0c1-2345-7abc-8def-0123456789ab"]}',
  '{"id": "0192f0c123457abc8def0123456789ab"}',
  '{"id": "{0192f0c1-2345-7abc-8def-0123456789ab}"}',
  '{"id": " 0192f0c1-2345-7abc-8def-0123456789ab"}',
  '{"id": "0192f0c1-2345-7abc-8def-0123456789ab\n"}'
]::jsonb[]) body;

select * from finish();
rollback;
