begin;
-- Case 39.
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(8);

create temporary table refused as
select name, pg_temp.diagnose(format(call, :'principal', :'key', 'pay', :'fingerprint', '{"code": "request_in_progress", "token": "tok_SECRET_7f3a"}')) as e
from (values
  ('a status that is not final', 'select pgidem.idem_save_final(%L, %L, %L, %L, 500, %L)'),
  ('a response that is not final', 'select pgidem.idem_save_final(%L, %L, %L, %L, 409, %L)'),
  ('no duration', 'select pgidem.idem_save_final(%L, %L, %L, %L, 404, %L, interval ''0'')'),
  ('no key', 'select pgidem.idem_save_final(%L, null, %3$L, %4$L, 404, %5$L)')
) v (name, call);

select is(e ->> 'code', '22023', name) from refused;
select unalike(e::text, '%SECRET%', name) from refused;

select * from finish();
rollback;
