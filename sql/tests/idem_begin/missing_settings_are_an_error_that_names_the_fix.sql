begin;
\ir ../_setup.psql
\ir ../_alone.psql
\ir ../_diagnose.psql
select plan(3);

delete from pgidem.settings;
select pg_temp.diagnose('select ' || :'begin_key') as e \gset
select is(:'e'::jsonb ->> 'code', '22023', 'refused');
select alike(:'e'::jsonb ->> 'hint', '%insert into pgidem.settings default values%', 'with the statement that helps');
select is(outcome, 'claimed', 'not needed where both durations are given')
from pgidem.idem_begin(:'principal', :'key', 'pay', :'fingerprint', p_ttl => '1 hour', p_lock_timeout => '1 second');

select * from finish();
rollback;
