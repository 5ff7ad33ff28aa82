begin;
\ir ../_setup.psql
select plan(3);

select is((:begin_key).outcome, 'claimed', 'claimed');
savepoint claimed;
prepare complete_with_the_mark as
select pgidem.idem_complete(:'principal', :'key', 201, '{"one_time_secret": true}');
select throws_ok('complete_with_the_mark', '22023', 'invalid body', 'stored, it would refuse every replay');
select is(
  pgidem.idem_complete(:'principal', :'key', 201, '{"one_time_secret": true}', true),
  '{"one_time_secret": true}',
  'with p_one_time_secret it is what is meant'
);

select * from finish();
rollback;
