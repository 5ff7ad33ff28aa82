begin;
-- L6: callers of an old and of a new version must meet at the same gate, so these numbers are a contract.
select plan(4);

select is(pgidem._gate(principal_id, key), gate, format('%s, %s', principal_id, key))
from (values
  ('00000000-0000-0000-0000-000000000000'::uuid, '00000000-0000-0000-0000-000000000000'::uuid, 5867701915551620887::bigint),
  ('0192f0c1-2345-7abc-8def-0123456789ab', '0192f0c1-6789-7abc-8def-0123456789ab', 7305063578228351262),
  ('0192f0c1-6789-7abc-8def-0123456789ab', '0192f0c1-2345-7abc-8def-0123456789ab', 178885746494534648),
  ('ffffffff-ffff-ffff-ffff-ffffffffffff', 'ffffffff-ffff-ffff-ffff-ffffffffffff', -737044321115156313)
) v (principal_id, key, gate);

select * from finish();
rollback;
