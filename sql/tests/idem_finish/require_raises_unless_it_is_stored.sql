begin;
-- C4: for an effect in this database, whose transaction must not commit then.
\ir ../_record.psql
\ir ../_diagnose.psql
select plan(7);

prepare require(bigint, bytea) as
select outcome from pgidem.idem_finish(:'user_id', :'key', $1, 201, null, null, null, $2, p_require => true);

select token from :claim_key \gset
select throws_ok(format('execute require(%s, %L)', :token - 1, 'tok_SECRET_7f3a'), 'ID003', 'the lease is lost', 'another token');
select pg_temp.diagnose(format('execute require(%s, %L)', :token - 1, 'tok_SECRET_7f3a')) as e \gset
select is(:'e'::jsonb ->> 'hint', 'Roll back what was done under this claim, and answer with what idem_claim says now.', 'the hint says what to do');
select unalike(:'e'::text, '%SECRET%', 'no body in an error');
select results_eq(format('execute require(%s, %L)', :token, 'done'), array['stored'], 'its own token');
select results_eq(format('execute require(%s, %L)', :token, 'done'), array['stored'], 'and again');
execute release(:token) \gset
select is((:claim_key).response_body, 'done'::bytea, 'what was stored stays');
select throws_ok(format('select pgidem.idem_finish(%L, %L, 1, 201, null, null, null, null, false, true)', :'user_id', 'unknown'), 'ID003', 'the lease is lost', 'no record');

select * from finish();
rollback;
