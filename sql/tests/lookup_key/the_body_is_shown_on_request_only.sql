begin;
\ir ../_setup.psql
select plan(6);

select :begin_key, :complete_key \gset
select is(response_body, null, 'not by default') from pgidem.lookup_key(:'principal', :'key');
select is(response_body, null, 'not for false') from pgidem.lookup_key(:'principal', :'key', false);
select is(response_body, null, 'not for null') from pgidem.lookup_key(:'principal', :'key', null);
select is(response_body, '{"amount": 1}', 'for true') from pgidem.lookup_key(:'principal', :'key', p_with_body => true);

update pgidem.idempotency_keys set response_body = 'null' where :this_key;
select is(response_body, 'null', 'a JSON null is a body') from pgidem.lookup_key(:'principal', :'key', true);
update pgidem.idempotency_keys set response_body = null where :this_key;
select is(response_body, null, 'a response without a body has none to show') from pgidem.lookup_key(:'principal', :'key', true);

select * from finish();
rollback;
