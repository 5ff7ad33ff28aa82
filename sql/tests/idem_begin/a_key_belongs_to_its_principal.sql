begin;
-- Case 56. Without a principal there is no call: an_argument_that_is_missing_is_refused.
\ir ../_setup.psql
select plan(5);

select gen_random_uuid() as stranger \gset
select :begin_key \gset
select :complete_key \gset
select results_eq(
  format('select outcome, response_status, response_body from pgidem.idem_begin(%L, %L, %L, %L)',
    :'stranger', :'key', 'pay', :'fingerprint'),
  $$values ('claimed', null::integer, null)$$,
  'the same key of another principal is fresh'
);
select is((pgidem.idem_begin(gen_random_uuid(), :'key', 'pay', :'other_fingerprint')).outcome, 'claimed',
  'with another request too, and nobody hears of a reuse');
select pgidem.idem_complete(:'stranger', :'key', 200, '{"amount": 2}') \gset
select is((:begin_key).response_body, '{"amount": 1}', 'each keeps its own response');
select is((pgidem.idem_begin(:'stranger', :'key', 'pay', :'fingerprint')).response_body, '{"amount": 2}', 'both of them');
select is((pgidem.idem_begin(:'principal', gen_random_uuid(), 'pay', :'fingerprint')).outcome, 'claimed',
  'another key of the same principal is fresh');

select * from finish();
rollback;
