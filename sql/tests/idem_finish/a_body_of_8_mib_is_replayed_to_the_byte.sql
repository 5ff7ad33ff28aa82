begin;
-- Case 28 and M11.
\ir ../_record.psql
select plan(3);

-- Not to be compressed, and compressed.
create temporary table bodies as
select 'random' as what, (select string_agg(sha512(n::text::bytea), '') from generate_series(1, 131072) n) as body
union all
select 'zeros', decode(repeat('00', 8 * 1024 * 1024), 'hex');
select is(min(octet_length(body)) + max(octet_length(body)), 2 * 8 * 1024 * 1024, '8 MiB each') from bodies;
create temporary table stored as
select b.what, (pgidem.idem_finish(:'user_id', b.what, c.token, 200, null, null, null, b.body)).outcome
from bodies b, lateral pgidem.idem_claim(:'user_id', b.what, :'fingerprint') c;
select ok(sha256(c.response_body) = sha256(b.body) and s.outcome = 'stored', b.what)
from bodies b
join stored s using (what),
lateral pgidem.idem_claim(:'user_id', b.what, :'fingerprint') c;

select * from finish();
rollback;
