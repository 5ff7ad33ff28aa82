begin;
\ir ../_record.psql
select plan(2);

create temporary table claims as
select u.user_id, k.key, (pgidem.idem_claim(u.user_id, k.key, :'fingerprint')).token
from unnest(array[:'user_id', 'another user']) u (user_id), unnest(array[:'key', 'another key']) k (key);
select token from claims where user_id = :'user_id' and key = :'key' \gset
execute finish(:token, 'done') \gset
select is(:'outcome'::text, 'stored', 'one of four');
select is(count(*)::integer, 3, 'the others run on')
from pgidem.idempotency_record r join claims c on c.user_id = r.user_id and c.key = r.idem_key
where r.state = 'in_progress' and r.response_body is null;

select * from finish();
rollback;
