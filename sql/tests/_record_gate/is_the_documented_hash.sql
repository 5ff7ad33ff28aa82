begin;
\ir ../_record.psql
select plan(1);

select is(
  pgidem._record_gate(:'user_id', :'key'),
  hashtextextended(:'key', hashtextextended(:'user_id', 0)),
  'so that a caller can compute it'
);

select * from finish();
rollback;
