begin;
-- Case 30.
\ir ../_record.psql
select plan(4);

prepare answer(text, bytea) as
select f.outcome, f.response_status, f.content_type, f.response_body
from pgidem.idem_claim(:'user_id', $1, :'fingerprint') c, pgidem.idem_finish(:'user_id', $1, c.token, 204, null, null, null, $2) f;
select results_eq($$execute answer('no body', null)$$, $$values ('stored', 204, null, null::bytea)$$, 'none');
select results_eq($$execute answer('empty', '')$$, $$values ('stored', 204, null, ''::bytea)$$, 'an empty one');
select results_eq(format('select outcome, response_status, content_type, location, etag, response_body from pgidem.idem_claim(%L, ''no body'', %L)', :'user_id', :'fingerprint'),
  $$values ('replay', 204, null, null, null, null::bytea)$$, 'replayed without one');
select is((pgidem.idem_claim(:'user_id', 'empty', :'fingerprint')).response_body, ''::bytea, 'an empty one is replayed as such');

select * from finish();
rollback;
