begin;
\ir ../_diagnose.psql
select plan(3);

select pg_temp.diagnose($$select pgidem._duration('p_ttl', '1 mon')$$) as e \gset
select is(:'e'::jsonb ->> 'detail', 'p_ttl is 1 mon.', 'name and value');
select alike(:'e'::jsonb ->> 'hint', 'Give more than zero and at most 10 years%', 'and what would do');
select pg_temp.diagnose($$select pgidem._duration('settings.key_ttl', null)$$) as e \gset
select is(:'e'::jsonb ->> 'detail', 'settings.key_ttl is not set.', 'a setting that is missing');

select * from finish();
rollback;
