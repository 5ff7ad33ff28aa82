begin;
\ir ../_setup.psql
\ir ../_diagnose.psql
select plan(3);

select pg_temp.diagnose('select pgidem.idem_begin(null, null, null, null)') as e \gset
select is(:'e'::jsonb ->> 'detail',
  'p_principal_id is null. p_key is null. p_action is null. p_request_sha256 does not have 32 bytes.', 'all at once');
select isnt(:'e'::jsonb ->> 'hint', '', 'with a hint');

select pg_temp.diagnose(format('select pgidem.idem_begin(%L, %L, %L, %L)', :'principal', :'key', 'pay', 'hunter2')) as e \gset
select unalike(:'e'::text, '%hunter2%', 'and not what was passed');

select * from finish();
rollback;
