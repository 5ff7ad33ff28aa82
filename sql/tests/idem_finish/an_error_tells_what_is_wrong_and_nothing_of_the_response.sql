begin;
\ir ../_record.psql
\ir ../_diagnose.psql
select plan(4);

select pg_temp.diagnose(format('select pgidem.idem_finish(%L, %L, 1, 99, %L, null, null, %L)', :'user_id', :'key', E'tok_SECRET_7f3a\n', 'tok_SECRET_7f3a')) as e \gset
select is(:'e'::jsonb ->> 'detail', 'p_status is 99; idem_finish stores 200 to 599. p_content_type, p_location or p_etag holds a control character.', 'both at once');
select unalike(:'e'::text, '%SECRET%', 'no part of the response');
select pg_temp.diagnose(format('select pgidem.idem_finish(%L, %L, null, 200, null, null, null, %L)', :'user_id', :'key', 'tok_SECRET_7f3a')) as e \gset
select is(:'e'::jsonb ->> 'detail', 'p_token is null.', 'a missing token');
select unalike(:'e'::text, '%SECRET%', 'no part of the response');

select * from finish();
rollback;
