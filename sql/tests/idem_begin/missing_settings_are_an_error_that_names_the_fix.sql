begin;
\ir ../_setup.psql
\ir ../_alone.psql
\ir ../_diagnose.psql
select plan(5);

delete from pgidem.settings;
select pg_temp.diagnose('select ' || :'begin_key') as e \gset
select is(:'e'::jsonb ->> 'code', '22023', 'refused');
select alike(:'e'::jsonb ->> 'hint', '%insert into pgidem.settings default values%', 'with the statement that helps');
select is(outcome, 'claimed', 'not needed where both durations are given')
from pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '1 hour', p_lock_timeout => '1 second');

select is(:complete_key, '{"amount": 1}', 'nor to complete');
select is((:begin_key).outcome, 'replay', 'nor for a stored response');

select * from finish();
rollback;
