begin;
\ir ../_record.psql
\ir ../_any_case.psql
select plan(9);

create temporary table caller (user_id text collate pg_temp.any_case, key text collate pg_temp.any_case, content_type text collate pg_temp.any_case);
insert into caller values (:'user_id', :'key', 'text/plain');

select r.outcome, r.token from caller c, pgidem.idem_claim(c.user_id, c.key, :'fingerprint') r \gset
select is(:'outcome'::text, 'claimed', 'claimed');
select is((pgidem.idem_claim(user_id, key, :'fingerprint')).outcome, 'in_progress', 'found again') from caller;
select is((pgidem.idem_claim(upper(user_id), key, :'fingerprint')).outcome, 'claimed', 'not in another case') from caller;
select is(pgidem.idem_renew(user_id, key, :token), true, 'renewed') from caller;
select is(pgidem.idem_renew(user_id, upper(key), :token), false, 'not in another case') from caller;
select lives_ok(format('select pgidem.idem_assert_lease(user_id, key, %s) from caller', :token), 'asserted');
select is((pgidem.idem_finish(user_id, key, :token, 201, content_type, null, null, null)).outcome, 'stored', 'finished') from caller;
select is(pgidem.idem_release(user_id, key, :token), false, 'not released, since it is finished') from caller;
select is(state, 'completed', 'looked up') from caller c, pgidem.lookup_key(c.user_id, c.key);

select * from finish();
rollback;
