begin;
-- A caller committed without idem_complete: the key is stuck until its TTL ends, and then goes like any other.
\ir ../_expired_keys.psql
select plan(1);

update pgidem.idempotency_keys set state = 'in_progress', response_status = null, response_body = null
where principal_id = :'principal' and expires_at = '2000-03-02 12:01+00';
select is(pgidem.cleanup_batch(1), 1, 'in_progress too');

select * from finish();
rollback;
