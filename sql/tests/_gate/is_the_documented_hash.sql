begin;
\ir ../_setup.psql
select plan(1);

select is(
  pgidem._gate(:'principal', :'key'),
  uuid_hash_extended(:'key', uuid_hash_extended(:'principal', 0)),
  'so that a caller can compute it'
);

select * from finish();
rollback;
