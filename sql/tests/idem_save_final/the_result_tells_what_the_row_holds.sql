begin;
\ir ../_setup.psql
\ir ../_alone.psql
select plan(2);

create temporary view recorded as
select response_status::integer, response_body::text, resource_id, created_at, expires_at
from pgidem.idempotency_keys where :this_key;

create temporary table result as
select response_status, response_body, resource_id, created_at, expires_at
from pgidem.idem_save_final(:'principal', :'key', 'pay', :'fingerprint', 409, '{"id": "0192f0c1-2345-7abc-8def-0123456789ab"}');
select results_eq('table result', 'table recorded', 'response, resource and both instants');

-- A clock that moves one hour with each reading: the TTL is over before the row is completed, and counts again.
create temporary sequence hours;
create or replace function pgidem._now() returns timestamptz language sql volatile parallel safe
return '2026-01-01 00:00+00'::timestamptz + nextval('hours') * interval '1 hour';
delete from pgidem.idempotency_keys where :this_key;
truncate result;
insert into result
select response_status, response_body, resource_id, created_at, expires_at
from pgidem.idem_save_final(:'principal', :'key', 'pay', :'fingerprint', 404, null, p_ttl => '1 minute');
select results_eq('table result', 'table recorded', 'also when the TTL was over at once');

select * from finish();
rollback;
