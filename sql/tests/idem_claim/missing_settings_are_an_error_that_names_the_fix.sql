begin;
\ir ../_record.psql
\ir ../_alone.psql
\ir ../_diagnose.psql
select plan(6);

delete from pgidem.settings;
select pg_temp.diagnose('select ' || :'claim_key') as e \gset
select is(:'e'::jsonb ->> 'code', '22023', 'refused');
select alike(:'e'::jsonb ->> 'hint', '%insert into pgidem.settings default values%', 'with the statement that helps');
select outcome, token from pgidem.idem_claim(:'user_id', :'key', :'fingerprint', '1 hour', '1 hour', '1 second') \gset
select is(:'outcome'::text, 'claimed', 'not needed where all durations are given');
select pg_temp.diagnose(format('execute renew(%s, null)', :token)) as e \gset
select is(concat_ws(' ', :'e'::jsonb ->> 'code', :'e'::jsonb ->> 'detail'), '22023 settings.lease is not set.', 'needed to renew without a lease');
execute finish(:token, 'done') \gset
select is(:'outcome'::text, 'stored', 'not needed to finish');
select is((:claim_key).outcome, 'replay', 'nor for a stored response');

select * from finish();
rollback;
