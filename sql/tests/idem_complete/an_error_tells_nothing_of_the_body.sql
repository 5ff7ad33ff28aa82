begin;
-- Case 39: what a client sends along is in no message, detail or hint.
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(6);

create temporary table refused as
select name, code, pg_temp.diagnose(format(call, :'principal', :'key', '{"code": "request_in_progress", "token": "tok_SECRET_7f3a"}')) as e
from (values
  ('no claim', 'ID001', 'select pgidem.idem_complete(%L, %L, 200, %L)'),
  ('a status that is none of its own', '22023', 'select pgidem.idem_complete(%L, %L, 404, %L)'),
  ('no status', '22023', 'select pgidem.idem_complete(%L, %L, null, %L, true)')
) v (name, code, call);

select is(e ->> 'code', code, name) from refused;
select unalike(e::text, '%SECRET%', name) from refused;

select * from finish();
rollback;
