begin;
-- Case 56. Without a user there is no call: an_invalid_user_or_key_is_refused.
\ir ../_record.psql
select plan(6);

select token from :claim_key \gset
execute finish(:token, 'of the first') \gset
select results_eq(
  format('select outcome, response_body from pgidem.idem_claim(%L, %L, %L)', 'a stranger', :'key', :'fingerprint'),
  $$values ('claimed', null::bytea)$$,
  'the same key of another user is fresh'
);
select is((pgidem.idem_claim('a third', :'key', :'other_fingerprint')).outcome, 'claimed', 'with another request too, and nobody hears of a reuse');
select is((pgidem.idem_finish('a stranger', :'key', :token, 200, null, null, null, 'theft')).outcome, 'in_progress', 'a token is good for its own user');
select is(pgidem.idem_release('a stranger', :'key', :token), false, 'also to release');
select is((:claim_key).response_body, 'of the first'::bytea, 'each keeps its own response');
select is((pgidem.idem_claim(:'user_id', 'another', :'fingerprint')).outcome, 'claimed', 'another key of the same user is fresh');

select * from finish();
rollback;
