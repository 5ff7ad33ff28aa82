begin;
\ir ../_setup.psql
select plan(3);

select :begin_key, :complete_key \gset
select is_empty(format('select * from pgidem.lookup_key(%L, gen_random_uuid()::text)', :'principal'), 'another key');
select is_empty(format('select * from pgidem.lookup_key(gen_random_uuid()::text, %L)', :'key'), 'another principal');
select is_empty(format('select * from pgidem.lookup_key(%L, %L)', :'key', :'principal'), 'the two exchanged');

select * from finish();
rollback;
