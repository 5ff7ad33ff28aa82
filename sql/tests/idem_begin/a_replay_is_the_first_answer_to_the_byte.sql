begin;
-- Case 28: jsonb orders members and rewrites numbers, so what was stored is the first answer too.
\ir ../_setup.psql
select plan(2);

select :begin_key \gset
select pgidem.idem_complete(
  :'principal', :'key', 201, '{"bb":1.10,"a":1e2,"n":12345678901234567890.10,"z":-0,"u":"\u00e9\ud83d\ude00 \"q\""}'
) as first_answer \gset
select is((:begin_key).response_body, :'first_answer', 'the replay');
select is(
  :'first_answer'::jsonb,
  '{"bb":1.10,"a":1e2,"n":12345678901234567890.10,"z":-0,"u":"\u00e9\ud83d\ude00 \"q\""}'::jsonb,
  'equals as JSON what was given'
);

select * from finish();
rollback;
