begin;
-- A nondeterministic collation would hash texts that it calls equal to one number, and others to another than the plain text.
\ir ../_record.psql
\ir ../_any_case.psql
select plan(2);

select is(pgidem._record_gate(:'user_id' collate pg_temp.any_case, :'key' collate pg_temp.any_case),
  pgidem._record_gate(:'user_id', :'key'), 'the same text');
select isnt(pgidem._record_gate(upper(:'user_id') collate pg_temp.any_case, :'key' collate pg_temp.any_case),
  pgidem._record_gate(:'user_id', :'key'), 'another text');

select * from finish();
rollback;
