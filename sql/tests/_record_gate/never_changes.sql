begin;
-- L6, as in _gate.
select plan(4);

select is(pgidem._record_gate(user_id, key), gate, format('%s, %s', user_id, key))
from (values
  ('user-1', 'order-1', -6896248587543848928::bigint),
  ('order-1', 'user-1', 114457738122199539),
  (U&'Zo\00eb', '0192f0c1-6789-7abc-8def-0123456789ab', -3422061998662327403),
  ('', '', 3409119695197288489)
) v (user_id, key, gate);

select * from finish();
rollback;
