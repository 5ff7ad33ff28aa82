begin;
-- M11. Text that compresses badly, 1 MiB of it, which is what a response may be.
\ir ../_setup.psql
select plan(3);

create temporary table body as
select jsonb_build_object('id', gen_random_uuid(), 'parts', jsonb_agg(sha512(n::text::bytea))) as body from generate_series(1, 7700) n;
select ok(length(body::text) between 1000000 and 1048576, 'about 1 MiB') from body;
select :begin_key \gset
select md5(pgidem.idem_complete(:'principal', :'key', 200, body)) as first_answer from body \gset
select is(:'first_answer', (select md5(body::text) from body), 'the first answer');
select is(md5((:begin_key).response_body), :'first_answer', 'and the replay');

select * from finish();
rollback;
